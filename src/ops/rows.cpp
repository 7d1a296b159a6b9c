#include "ops/rows.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::ops {

void expect_rows(const std::string& op, const TensorSpec& input) {
  if (input.dtype == DType::f32 && input.shape.size() >= 2) return;
  throw Error(ExitCode::configuration,
              fmt::format("{}: expected an input [batch, ..., features] of f32, found {} of {}", op,
                          to_string(input.shape), name_of(input.dtype)));
}

}  // namespace lockstep::ops
