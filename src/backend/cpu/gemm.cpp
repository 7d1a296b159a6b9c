#include "backend/cpu/gemm.hpp"

#include <dnnl.h>

#include "lockstep/error.hpp"

namespace lockstep::backend {

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, MatrixView a, MatrixView b, float beta, float* c,
          std::int64_t stride) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    for (std::int64_t row = 0; row < m; ++row) {
      for (std::int64_t i = 0; i < n; ++i) c[row * stride + i] = beta == 0 ? 0 : beta * c[row * stride + i];
    }
    return;
  }
  const auto status = dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, alpha, a.data, a.stride,
                                 b.data, b.stride, beta, c, stride);
  LOCKSTEP_CHECK(status == dnnl_success, "dnnl_sgemm");
}

}  // namespace lockstep::backend
