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

/// The sum of x[i] * e^(exponents[i] - shift).
LOCKSTEP_INLINE float sum_of_scaled_exponentials(const float* x, const float* exponents, std::int64_t n, float shift) {
  Lanes total = {}, factor, part;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    load(factor, x + i);
    load(part, exponents + i);
    total += factor * vector_exp(part - shift);
  }
  if (i < n) {
    load_part(factor, x + i, n - i, 0);
    load_part(part, exponents + i, n - i, shift);
    total += factor * vector_exp(part - shift);
  }
  return combine(total);
}

}  // namespace lockstep::device
