// Single-precision matrix product for kernels: row-major, single-threaded, the same bits on each call and on
// each thread.
#pragma once

#include <cstdint>

namespace lockstep::backend {

/// A row-major matrix in memory; `transposed`: the product reads it as its transpose.
struct MatrixView {
  const float* data = nullptr;
  std::int64_t stride = 0;  ///< elements from one row in memory to the next
  bool transposed = false;
};

/// c[m, n] = alpha * a[m, k] * b[k, n] + beta * c. With beta 0, c is only written. Sizes may be 0.
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, MatrixView a, MatrixView b, float beta, float* c,
          std::int64_t stride);

}  // namespace lockstep::backend
