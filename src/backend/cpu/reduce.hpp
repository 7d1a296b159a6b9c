// Sums with a stated association, for functions marked LOCKSTEP_VECTORIZED: element i goes to lane i mod 16, a
// lane adds in order, lanes are combined as a tree. The bits are the same for every instruction set and address.
#pragma once

#include <cstdint>
#include <cstring>

#define LOCKSTEP_INLINE inline __attribute__((always_inline))
/// After a lambda's parameters: it joins the function marked LOCKSTEP_VECTORIZED that it is used in.
#define LOCKSTEP_INLINE_LAMBDA __attribute__((always_inline))

// Lanes passed by value would be an ABI question; everything here is inlined, so it is none.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace lockstep::backend {

/// Sixteen floats; the compiler maps them to whatever registers the instruction set has.
using Lanes = float __attribute__((vector_size(64)));
inline constexpr std::int64_t kLanes = 16;

LOCKSTEP_INLINE void load(Lanes& to, const float* from) {
  std::memcpy(&to, from, sizeof(Lanes));
}
LOCKSTEP_INLINE void store(float* to, const Lanes& from) {
  std::memcpy(to, &from, sizeof(Lanes));
}
/// The first `count` lanes; the others are `rest`.
LOCKSTEP_INLINE void load_part(Lanes& to, const float* from, std::int64_t count, float rest) {
  to = Lanes{} + rest;
  std::memcpy(&to, from, static_cast<std::size_t>(count) * sizeof(float));
}

LOCKSTEP_INLINE void store_part(float* to, const Lanes& from, std::int64_t count) {
  std::memcpy(to, &from, static_cast<std::size_t>(count) * sizeof(float));
}

/// The first `count` lanes, at most all of them; the others are 0.
LOCKSTEP_INLINE void load_some(Lanes& to, const float* from, std::int64_t count) {
  if (count == kLanes) {
    load(to, from);
  } else {
    load_part(to, from, count, 0);
  }
}

LOCKSTEP_INLINE void store_some(float* to, const Lanes& from, std::int64_t count) {
  if (count == kLanes) {
    store(to, from);
  } else {
    store_part(to, from, count);
  }
}

/// y[i] = function(x[i]); `function` takes and gives Lanes. y may be x.
template <class Function>
LOCKSTEP_INLINE void map(const float* x, float* y, std::int64_t n, const Function& function) {
  Lanes a;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    load(a, x + i);
    store(y + i, function(a));
  }
  if (i < n) {
    load_part(a, x + i, n - i, 0);
    store_part(y + i, function(a), n - i);
  }
}

/// z[i] = function(x[i], y[i]). z may be x or y.
template <class Function>
LOCKSTEP_INLINE void map(const float* x, const float* y, float* z, std::int64_t n, const Function& function) {
  Lanes a, b;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    load(a, x + i);
    load(b, y + i);
    store(z + i, function(a, b));
  }
  if (i < n) {
    load_part(a, x + i, n - i, 0);
    load_part(b, y + i, n - i, 0);
    store_part(z + i, function(a, b), n - i);
  }
}

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

/// The largest element; -infinity if there is none. A NaN may be passed over: the sums that follow show it.
LOCKSTEP_INLINE float maximum(const float* x, std::int64_t n) {
  constexpr float kLowest = -__builtin_inff();
  Lanes best = Lanes{} + kLowest, part;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    load(part, x + i);
    best = part > best ? part : best;
  }
  if (i < n) {
    load_part(part, x + i, n - i, kLowest);
    best = part > best ? part : best;
  }
  return combine_maximum(best);
}

/// total[n] = sum of the rows of x[rows, n], in order of rows.
LOCKSTEP_INLINE void sum_rows(const float* x, float* total, std::int64_t rows, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) total[i] = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < n; ++i) total[i] += x[row * n + i];
  }
}

}  // namespace lockstep::backend
