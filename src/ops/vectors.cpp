#include "ops/vectors.hpp"

#include "core/vectorize.hpp"

namespace lockstep::ops {

LOCKSTEP_VECTORIZED void multiply(const float* a, const float* b, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] * b[i];
}

}  // namespace lockstep::ops
