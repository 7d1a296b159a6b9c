// Sums over rows on the CPU, in the order of device/row_blocks.hpp. Each needs a scratch of row_sums_bytes() there.
#pragma once

#include <cstdint>

#include "device/row_blocks.hpp"

namespace lockstep::ops {

/// total[columns] = sum of the rows of x [rows, columns].
void sum_rows(const float* x, std::int64_t rows, std::int64_t columns, float* total, void* scratch);

/// What a norm over rows [rows, columns] made, and the gradient of it.
struct NormedRows {
  const float *x, *dy;
  const float *means, *scales;  ///< [rows]; means may be null
  std::int64_t rows, columns;
};

/// The gradient of the weight: total[columns] = sum over rows of dy * ((x - mean) * scale), or dy * (x * scale).
void sum_scale_gradients(const NormedRows& of, float* total, void* scratch);

}  // namespace lockstep::ops
