// Rows of exponentials, for functions marked LOCKSTEP_VECTORIZED.
#pragma once

#include <cmath>

#include "backend/cpu/reduce.hpp"
#include "backend/cpu/vector_math.hpp"

namespace lockstep::backend {

/// y[i] = e^(scale * x[i] - shift); returns their sum. y may be x.
LOCKSTEP_INLINE float exponentials(const float* x, float* y, std::int64_t n, float scale, float shift) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = vector_exp(scale * x[i] - shift);
  return sum(y, n);
}

/// The sum of e^(x[i] - shift) without storing them.
LOCKSTEP_INLINE float sum_of_exponentials(const float* x, std::int64_t n, float shift) {
  Lanes total = {}, part;
  for (std::int64_t i = 0; i < n; i += kLanes) {
    if (i + kLanes <= n) load(part, x + i);
    else load_part(part, x + i, n - i, -__builtin_inff());
    float e[kLanes];
    std::memcpy(e, &part, sizeof e);
    for (std::int64_t lane = 0; lane < kLanes; ++lane) e[lane] = vector_exp(e[lane] - shift);
    std::memcpy(&part, e, sizeof e);
    total += part;
  }
  return combine(total);
}

}  // namespace lockstep::backend
