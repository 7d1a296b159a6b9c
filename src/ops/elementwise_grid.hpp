// Elementwise kernels on a Grid (device/gpu/grid.hpp): a formula is a type with functions on floats.
#pragma once

#include <cstdint>
#include <memory>

#include "device/gpu/grid.hpp"
#include "ops/element_grid.hpp"
#include "ops/elementwise.hpp"

namespace lockstep::ops {

/// y[i] = function.of(x[i])
template <class Function, class T>
struct MapFunctor {
  const T* x;
  T* y;
  Function function = {};
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const { return function.of(float{x[i]}); }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { y[i] = value; }
};

/// z[i] = function.of(x[i], y[i]); z may be x or y if the types are equal.
template <class Function, class X, class Y = X, class Z = X>
struct MapPairFunctor {
  const X* x;
  const Y* y;
  Z* z;
  Function function = {};
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const { return function.of(x[i], y[i]); }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { z[i] = value; }
};

struct Product {
  static LOCKSTEP_HOST_DEVICE float of(float a, float b) { return a * b; }
};

}  // namespace lockstep::ops
