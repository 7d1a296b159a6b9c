#include "ops/lengths.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::ops {

void require_lengths(const std::string& op, const TensorSpec& x, const TensorSpec& lengths) {
  if (x.shape.size() >= 2 && lengths.dtype == DType::i32 && lengths.shape == Shape{x.shape[0]}) return;
  throw Error(ExitCode::configuration,
              fmt::format("{}: expected an input [batch, time, ...] and lengths [batch] of i32, found {} and {} of {}",
                          op, to_string(x.shape), to_string(lengths.shape), name_of(lengths.dtype)));
}

}  // namespace lockstep::ops
