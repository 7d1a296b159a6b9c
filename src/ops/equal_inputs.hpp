// Shape rule of ops over several tensors of one shape: add, mul.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>

#include "lockstep/error.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

inline Signature equal_inputs(const std::string& op, std::span<const TensorSpec> inputs) {
  for (const TensorSpec& other : inputs.subspan(1)) {
    if (other.shape != inputs[0].shape) {
      throw Error(ExitCode::configuration, fmt::format("{}: expected inputs of one shape, found {} and {}", op,
                                                       to_string(inputs[0].shape), to_string(other.shape)));
    }
  }
  for (const TensorSpec& input : inputs) {
    if (input.dtype != DType::f32) {
      throw Error(ExitCode::configuration,
                  fmt::format("{}: expected inputs of f32, found {}", op, name_of(input.dtype)));
    }
  }
  Signature signature;
  signature.outputs.push_back(inputs[0]);
  return signature;
}

}  // namespace lockstep::ops
