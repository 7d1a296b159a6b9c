// Test cases of elementwise functions.
#pragma once

#include <cmath>
#include <string>

#include "ops/op_case.hpp"

namespace lockstep::ops {

/// Far from 0 as well as near it.
inline void fill_wide(int /*index*/, Tensor& tensor) {
  float x = -12.3F;
  for (auto& value : tensor.as<float>()) value = (x = x > 12 ? x - 24.1F : x + 0.37F);
}

inline std::vector<OpCase> activation_cases(const Attributes& attributes = {}, const std::string& prefix = "") {
  return {
      {.name = prefix + "odd", .attributes = attributes, .inputs = {{DType::f32, {3, 7}}}},
      {.name = prefix + "wide", .attributes = attributes, .inputs = {{DType::f32, {5, 41}}}, .fill = fill_wide},
      {.name = prefix + "empty", .attributes = attributes, .inputs = {{DType::f32, {0, 7}}}},
      {.name = prefix + "speed", .attributes = attributes, .inputs = {{DType::f32, {1, 64, 512}}}, .benchmark = true},
  };
}

template <class Function>
ReferenceResult elementwise_reference(const ReferenceCall& call, Function function) {
  DoubleTensor y = call.inputs[0];
  for (double& value : y.values) value = function(value);
  return {{y}, {}};
}

/// gelu, tanh approximation.
inline double gelu_reference(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

}  // namespace lockstep::ops
