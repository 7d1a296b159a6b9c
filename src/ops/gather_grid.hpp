// Functors that move elements without computing. A Place has `std::int64_t of(std::int64_t i) const`: the index of
// element i in the other tensor.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"

namespace lockstep::ops {

/// to[i] = from[place.of(i)]
template <class Place, class T>
struct GatherFunctor {
  const T* from;
  T* to;
  Place place;
  LOCKSTEP_HOST_DEVICE T value(std::int64_t i) const { return from[place.of(i)]; }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, T value) const { to[i] = value; }
};

/// to[place.of(i)] = from[i]; place.of() must be injective.
template <class Place, class T>
struct ScatterFunctor {
  const T* from;
  T* to;
  Place place;
  LOCKSTEP_HOST_DEVICE T value(std::int64_t i) const { return from[i]; }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, T value) const { to[place.of(i)] = value; }
};

}  // namespace lockstep::ops
