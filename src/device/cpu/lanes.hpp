// Sixteen floats at a time, for functions marked LOCKSTEP_VECTORIZED: loading and storing. Arithmetic, selection by
// lane and the functions of float_math.hpp work on them as on a single float.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/vectorize.hpp"
#include "device/float_math.hpp"

namespace lockstep::device {

/// The compiler maps them to the registers of the instruction set.
using Lanes = float __attribute__((vector_size(64)));
using IntegerLanes = std::int32_t __attribute__((vector_size(64)));
using UnsignedLanes = std::uint32_t __attribute__((vector_size(64)));
inline constexpr std::int64_t kLanes = 16;

template <>
struct Math<Lanes> {
  using Integer = IntegerLanes;
  using Unsigned = UnsignedLanes;
  static LOCKSTEP_INLINE Lanes to_float(const IntegerLanes& i) { return __builtin_convertvector(i, Lanes); }
};

/// Lanes at any address. (memcpy would also work, but goes through the stack in pieces smaller than a register.)
using LanesInMemory = float __attribute__((vector_size(64), aligned(4), may_alias));

LOCKSTEP_INLINE void load(Lanes& to, const float* from) {
  to = *reinterpret_cast<const LanesInMemory*>(from);
}
LOCKSTEP_INLINE void store(float* to, const Lanes& from) {
  *reinterpret_cast<LanesInMemory*>(to) = from;
}
/// Loads the first `count` lanes; the others become `rest`.
LOCKSTEP_INLINE void load_part(Lanes& to, const float* from, std::int64_t count, float rest) {
  to = Lanes{} + rest;
  std::memcpy(&to, from, count * sizeof(float));
}

LOCKSTEP_INLINE void store_part(float* to, const Lanes& from, std::int64_t count) {
  std::memcpy(to, &from, count * sizeof(float));
}

/// Loads the first `count` lanes, at most all of them; the others become 0.
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

/// y[i] = function(x[i]); `function` maps Lanes to Lanes. y may be x.
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

}  // namespace lockstep::device
