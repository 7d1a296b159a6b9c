#include "comm/reduce/add.hpp"

#include "core/vectorize.hpp"

namespace lockstep::comm {

LOCKSTEP_VECTORIZED void accumulate(float* __restrict left, const float* __restrict right, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) left[i] = left[i] + right[i];
}

LOCKSTEP_VECTORIZED void add(float* __restrict out, const float* __restrict left, const float* __restrict right,
                             std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = left[i] + right[i];
}

}  // namespace lockstep::comm
