// Activations that are a formula and have no settings. Each is a struct here and a line of the list below; CMake and
// the files beside this one make its op, its kernels for CPUs and GPUs, and its cases. (gelu has settings, and saves
// its slope: a folder of its own.)
//
// F is a float, or the vectors of device/cpu/lanes.hpp where kOverLanes. gradient() is given the output where
// kReadsOutput, else the input. kCost and kGradientCost are operations an element.
#pragma once

#include "device/float_math.hpp"

/// USE(struct, op), for each.
#define LOCKSTEP_ACTIVATIONS(USE) \
  USE(Relu, relu)                 \
  USE(Sigmoid, sigmoid)           \
  USE(Silu, silu)                 \
  USE(Tanh, tanh)

namespace lockstep::ops {

/// The gradient at 0 is 0, as in every framework. Not over lanes: the compiler makes vector code of a plain loop of
/// comparisons, but not of the comparison of vectors that are wider than a register.
struct Relu {
  static constexpr const char* kDoc = "max(x, 0)";
  static constexpr bool kReadsOutput = true, kOverLanes = false;
  static constexpr int kCost = 1, kGradientCost = 1;
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float of(float x) { return x > 0 ? x : 0; }
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float gradient(float y, float dy) { return y > 0 ? dy : 0; }
};

struct Sigmoid {
  static constexpr const char* kDoc = "1 / (1 + e^-x)";
  static constexpr bool kReadsOutput = true, kOverLanes = true;
  static constexpr int kCost = 20, kGradientCost = 25;
  template <class F>
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F of(const F& x) {
    return device::vector_sigmoid(x);
  }
  template <class F>
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F gradient(const F& y, const F& dy) {
    return dy * (y * (1.0F - y));
  }
};

struct Silu {
  static constexpr const char* kDoc = "x / (1 + e^-x)";
  static constexpr bool kReadsOutput = false, kOverLanes = true;
  static constexpr int kCost = 20, kGradientCost = 25;
  template <class F>
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F of(const F& x) {
    return x * device::vector_sigmoid(x);
  }
  template <class F>
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F gradient(const F& x, const F& dy) {
    const F s = device::vector_sigmoid(x);
    return dy * (s + x * s * (1.0F - s));
  }
};

struct Tanh {
  static constexpr const char* kDoc = "the hyperbolic tangent";
  static constexpr bool kReadsOutput = true, kOverLanes = true;
  static constexpr int kCost = 20, kGradientCost = 25;
  template <class F>
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F of(const F& x) {
    return device::vector_tanh(x);
  }
  template <class F>
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F gradient(const F& y, const F& dy) {
    return dy * (1.0F - y * y);
  }
};

}  // namespace lockstep::ops
