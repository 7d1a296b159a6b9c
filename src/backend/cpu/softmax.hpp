// Rows of exponentials, for functions marked LOCKSTEP_VECTORIZED. Sums have the association of reduce.hpp.
#pragma once

#include "backend/cpu/reduce.hpp"
#include "backend/cpu/vector_math.hpp"

namespace lockstep::backend {

/// y[i] = e^(x[i] - shift); returns their sum. y may be x.
LOCKSTEP_INLINE float exponentials(const float* x, float* y, std::int64_t n, float shift) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = vector_exp(x[i] - shift);
  return sum(y, n);
}

/// The same sum without storing the exponentials.
LOCKSTEP_INLINE float sum_of_exponentials(const float* x, std::int64_t n, float shift) {
  constexpr std::int64_t kBlock = 16 * kLanes;
  Lanes total = {}, part;
  float e[kBlock];
  for (std::int64_t i = 0; i < n; i += kBlock) {
    const std::int64_t count = n - i < kBlock ? n - i : kBlock;
    for (std::int64_t k = 0; k < count; ++k) e[k] = vector_exp(x[i + k] - shift);
    for (std::int64_t k = count; k % kLanes != 0; ++k) e[k] = 0;
    for (std::int64_t k = 0; k < count; k += kLanes) {
      load(part, e + k);
      total += part;
    }
  }
  return combine(total);
}

}  // namespace lockstep::backend
