// What norms over rows share on a Grid: gradients of weights, which add row after row, a thread a column.
#pragma once

#include <cstdint>

#include "backend/gpu/grid.hpp"

namespace lockstep::ops {

/// total[i] = sum of dy[row, i], in order of rows.
template <class T>
struct SumRowsBody {
  const T* dy;
  float* total;
  std::int64_t rows, size;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    float sum = 0;
    for (std::int64_t row = 0; row < rows; ++row) sum += dy[row * size + i];
    total[i] = sum;
  }
};

/// dw[i] = sum of dy[row, i] * z[row, i], in order of rows; z = (x - mean) * scale, or x * scale without means.
template <class T>
struct ScaleGradientBody {
  const T *x, *dy;
  const float *means, *scales;
  float* dw;
  std::int64_t rows, size;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    float sum = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t at = row * size + i;
      const float centered = means == nullptr ? x[at] : x[at] - means[row];
      sum += dy[at] * (centered * scales[row]);
    }
    dw[i] = sum;
  }
};

}  // namespace lockstep::ops
