// Phi and gelu's slope, Phi(x) + x Phi'(x), for float and for the vectors of device/cpu/lanes.hpp.
// (1 + tanh(u)) / 2 is sigmoid(2u), which needs one exponential and one division.
#pragma once

#include "device/float_math.hpp"

namespace lockstep::ops {

/// gelu's tanh approximation.
struct GeluTanh {
  static constexpr float kTwice = 1.5957691216F;  // 2 * sqrt(2 / pi)
  static constexpr float kCube = 0.044715F;
  template <class F>
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F phi(const F& x) {
    return device::vector_sigmoid(x * (x * x * (kTwice * kCube) + kTwice));
  }
  template <class F>
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F slope(const F& x, const F& phi) {
    return phi + x * (phi * (1.0F - phi)) * (x * x * (3.0F * kTwice * kCube) + kTwice);
  }
};

struct GeluExact {
  static constexpr float kHalfRoot = 0.70710678119F;  // 1 / sqrt(2)
  static constexpr float kDensity = 0.39894228040F;   // 1 / sqrt(2 pi)
  template <class F>
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F phi(const F& x) {
    return device::vector_erf(x * kHalfRoot) * 0.5F + 0.5F;
  }
  template <class F>
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F slope(const F& x, const F& phi) {
    return phi + x * (device::vector_exp(x * x * -0.5F) * kDensity);
  }
};

}  // namespace lockstep::ops
