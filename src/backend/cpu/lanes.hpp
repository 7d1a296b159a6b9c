// Sixteen floats at once, for functions marked LOCKSTEP_VECTORIZED: reading, writing, and choosing lane by lane.
//
// `a < b ? x : y` on vectors would choose, too. But where a vector is wider than a register (16 floats on AVX2) the
// compiler makes one scalar comparison after the other of it; so masks are made with subtraction and shifts.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#define LOCKSTEP_INLINE inline __attribute__((always_inline))
/// After a lambda's parameters: it joins the function marked LOCKSTEP_VECTORIZED that it is used in.
#define LOCKSTEP_INLINE_LAMBDA __attribute__((always_inline))

// Lanes passed by value would be an ABI question; everything here is inlined, so it is none.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace lockstep::backend {

/// The compiler maps them to whatever registers the instruction set has.
using Lanes = float __attribute__((vector_size(64)));
using IntegerLanes = std::int32_t __attribute__((vector_size(64)));
using UnsignedLanes = std::uint32_t __attribute__((vector_size(64)));
inline constexpr std::int64_t kLanes = 16;

/// The integers as wide as F: float or Lanes.
template <class F>
using IntegerOf = std::conditional_t<std::is_same_v<F, float>, std::int32_t, IntegerLanes>;
template <class F>
using UnsignedOf = std::conditional_t<std::is_same_v<F, float>, std::uint32_t, UnsignedLanes>;

/// Lanes anywhere in memory. (memcpy would do; but it goes through the stack in pieces smaller than a register.)
using LanesInMemory = float __attribute__((vector_size(64), aligned(4), may_alias));

LOCKSTEP_INLINE void load(Lanes& to, const float* from) {
  to = *reinterpret_cast<const LanesInMemory*>(from);
}
LOCKSTEP_INLINE void store(float* to, const Lanes& from) {
  *reinterpret_cast<LanesInMemory*>(to) = from;
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

template <class To, class From>
LOCKSTEP_INLINE To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

/// `F{} + value`: a value in every lane.
template <class F>
LOCKSTEP_INLINE F all(float value) {
  return F{} + value;
}

/// All bits set where the sign bit is.
template <class F>
LOCKSTEP_INLINE IntegerOf<F> sign_mask(const F& x) {
  return bits_as<IntegerOf<F>>(x) >> 31;
}

/// Where x < bound, a number other than 0; of no meaning where x is NaN.
template <class F>
LOCKSTEP_INLINE IntegerOf<F> is_below(const F& x, float bound) {
  return sign_mask(x - bound);
}
/// Where x > bound, as is_below().
template <class F>
LOCKSTEP_INLINE IntegerOf<F> is_above(const F& x, float bound) {
  return sign_mask(bound - x);
}

constexpr std::int32_t kInfinityBits = 0x7f800000, kMagnitudeBits = 0x7fffffff;

template <class F>
LOCKSTEP_INLINE IntegerOf<F> is_nan(const F& x) {
  return (kInfinityBits - (bits_as<IntegerOf<F>>(x) & kMagnitudeBits)) >> 31;
}
template <class F>
LOCKSTEP_INLINE IntegerOf<F> is_finite(const F& x) {
  return ((bits_as<IntegerOf<F>>(x) & kMagnitudeBits) - kInfinityBits) >> 31;
}

template <class F>
LOCKSTEP_INLINE F choose(const IntegerOf<F>& mask, const F& yes, const F& no) {
  using I = IntegerOf<F>;
  return bits_as<F>((bits_as<I>(yes) & mask) | (bits_as<I>(no) & ~mask));
}

}  // namespace lockstep::backend
