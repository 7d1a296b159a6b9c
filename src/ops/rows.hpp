// For ops that treat a tensor as rows of its last dimension: softmax, layer_norm, rms_norm; and sums over rows on the
// CPU, in the order of device/row_blocks.hpp, each with scratch memory of row_sums_bytes() (see there).
#pragma once

#include <cstdint>
#include <string>

#include "device/row_blocks.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep::ops {

struct Rows {
  std::int64_t count = 0;
  std::int64_t size = 0;

  explicit Rows(const TensorSpec& spec) : size(spec.shape.back()) { count = size == 0 ? 0 : spec.elements() / size; }
};

/// Throws Error(configuration) unless the input is [batch, ..., size] of f32.
void expect_rows(const std::string& op, const TensorSpec& input);

/// One value per row: [batch, ...].
inline TensorSpec per_row(const TensorSpec& input) {
  return {DType::f32, Shape(input.shape.begin(), input.shape.end() - 1)};
}

/// total[columns] = sum of the rows of x [rows, columns].
void sum_rows(const float* x, std::int64_t rows, std::int64_t columns, float* total, void* scratch);

/// The input of a norm over rows [rows, columns], its statistics, and the gradient of its result.
struct NormedRows {
  const float *x, *dy;
  const float *means, *scales;  ///< [rows]; means may be null
  std::int64_t rows, columns;
};

/// The gradient of the weight: total[columns] = sum over rows of dy * ((x - mean) * scale), or dy * (x * scale).
void sum_scale_gradients(const NormedRows& of, float* total, void* scratch);

}  // namespace lockstep::ops
