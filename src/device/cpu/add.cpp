#include "device/cpu/add.hpp"

#include "core/vectorize.hpp"

namespace lockstep::device {

LOCKSTEP_VECTORIZED void add(const float* left, const float* right, float* sum, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] = left[i] + right[i];
}

}  // namespace lockstep::device
