// Sums with a specified association, for functions marked LOCKSTEP_VECTORIZED: element i goes to lane i mod 16, a lane
// adds in order, lanes are combined as a tree. The bits are the same for every instruction set and address.
#pragma once

#include <cstdint>

#include "device/cpu/lanes.hpp"

namespace lockstep::device {

using HalfLanes = float __attribute__((vector_size(32)));
using QuarterLanes = float __attribute__((vector_size(16)));

LOCKSTEP_INLINE void halves(const Lanes& x, HalfLanes& low, HalfLanes& high) {
  low = __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7);
  high = __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
}
LOCKSTEP_INLINE void halves(const HalfLanes& x, QuarterLanes& low, QuarterLanes& high) {
  low = __builtin_shufflevector(x, x, 0, 1, 2, 3);
  high = __builtin_shufflevector(x, x, 4, 5, 6, 7);
}

LOCKSTEP_INLINE float combine(const Lanes& lanes) {
  HalfLanes low8, high8;
  halves(lanes, low8, high8);
  QuarterLanes low, high;
  halves(low8 + high8, low, high);
  low += high;
  return (low[0] + low[2]) + (low[1] + low[3]);
}

LOCKSTEP_INLINE float larger(float a, float b) {
  return a > b ? a : b;
}

LOCKSTEP_INLINE float combine_maximum(const Lanes& lanes) {
  HalfLanes low8, high8;
  halves(lanes, low8, high8);
  low8 = high8 > low8 ? high8 : low8;
  QuarterLanes low, high;
  halves(low8, low, high);
  low = high > low ? high : low;
  return larger(larger(low[0], low[2]), larger(low[1], low[3]));
}

LOCKSTEP_INLINE float sum(const float* x, std::int64_t n) {
  Lanes total = {}, part;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    load(part, x + i);
    total += part;
  }
  if (i < n) {
    load_part(part, x + i, n - i, 0);
    total += part;
  }
  return combine(total);
}

LOCKSTEP_INLINE float dot(const float* x, const float* y, std::int64_t n) {
  Lanes total = {}, a, b;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    load(a, x + i);
    load(b, y + i);
    total += a * b;
  }
  if (i < n) {
    load_part(a, x + i, n - i, 0);
    load_part(b, y + i, n - i, 0);
    total += a * b;
  }
  return combine(total);
}

/// The sum of x[i] - shift.
LOCKSTEP_INLINE float shifted_sum(const float* x, std::int64_t n, float shift) {
  Lanes total = {}, part;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    load(part, x + i);
    total += part - shift;
  }
  if (i < n) {
    load_part(part, x + i, n - i, shift);
    total += part - shift;
  }
  return combine(total);
}

/// The sum of x[i] * (y[i] - shift).
LOCKSTEP_INLINE float shifted_dot(const float* x, const float* y, std::int64_t n, float shift) {
  Lanes total = {}, a, b;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    load(a, x + i);
    load(b, y + i);
    total += a * (b - shift);
  }
  if (i < n) {
    load_part(a, x + i, n - i, 0);
    load_part(b, y + i, n - i, shift);
    total += a * (b - shift);
  }
  return combine(total);
}

LOCKSTEP_INLINE Lanes larger(const Lanes& a, const Lanes& b) {
  return choose(sign_mask(a - b), b, a);
}

/// The largest element; -infinity if there is none. A NaN may be ignored: it shows up in later sums.
LOCKSTEP_INLINE float maximum(const float* x, std::int64_t n) {
  constexpr float kLowest = -__builtin_inff();
  Lanes best = Lanes{} + kLowest, part;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    load(part, x + i);
    best = larger(best, part);
  }
  if (i < n) {
    load_part(part, x + i, n - i, kLowest);
    best = larger(best, part);
  }
  return combine_maximum(best);
}

}  // namespace lockstep::device
