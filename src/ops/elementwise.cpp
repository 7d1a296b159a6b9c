#include "ops/elementwise.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::ops {

Signature same_floats(const std::string& op, const TensorSpec& input) {
  if (input.dtype != DType::f32) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected an input of f32, found {}", op, name_of(input.dtype)));
  }
  return same_shape({}, {&input, 1});
}

}  // namespace lockstep::ops
