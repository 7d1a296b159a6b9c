// Ops that treat a tensor as rows of its last dimension: softmax, layer_norm, rms_norm.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/tensor.hpp"

namespace lockstep::ops {

struct Rows {
  std::int64_t count = 0;
  std::int64_t size = 0;

  explicit Rows(const TensorSpec& spec) : size(spec.shape.back()) { count = size == 0 ? 0 : spec.elements() / size; }
};

/// Throws Error(configuration) unless the input is [batch, ..., size] of f32.
void expect_rows(const std::string& op, const TensorSpec& input);

/// One value a row: [batch, ...].
inline TensorSpec per_row(const TensorSpec& input) {
  return {DType::f32, Shape(input.shape.begin(), input.shape.end() - 1)};
}

}  // namespace lockstep::ops
