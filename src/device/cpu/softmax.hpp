// Rows of exponentials, for functions marked LOCKSTEP_VECTORIZED. Sums have the association of reduce.hpp.
#pragma once

#include "device/cpu/lanes.hpp"
#include "device/cpu/reduce.hpp"

namespace lockstep::device {

/// y[i] = e^(x[i] - shift); returns their sum. y may be x.
LOCKSTEP_INLINE float exponentials(const float* x, float* y, std::int64_t n, float shift) {
  Lanes total = {}, part;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    load(part, x + i);
    part = vector_exp(part - shift);
    store(y + i, part);
    total += part;
  }
  if (i < n) {
    load_part(part, x + i, n - i, -__builtin_inff());
    part = vector_exp(part - shift);
    store_part(y + i, part, n - i);
    total += part;
  }
  return combine(total);
}

/// The same sum without storing the exponentials.
LOCKSTEP_INLINE float sum_of_exponentials(const float* x, std::int64_t n, float shift) {
  Lanes total = {}, part;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    load(part, x + i);
    total += vector_exp(part - shift);
  }
  if (i < n) {
    load_part(part, x + i, n - i, -__builtin_inff());
    total += vector_exp(part - shift);
  }
  return combine(total);
}

}  // namespace lockstep::device
