// Activations that are a formula and have no settings. Each is a struct here and a line of the list below; CMake and
// the files beside this one make its op, its kernels for CPUs and GPUs, and its cases. (relu and gelu have folders of
// their own: other ops join in the one, and the other has settings.)
//
// F is a float, or the vectors of device/cpu/lanes.hpp. In gradient() `seen` is the output where kReadsOutput, else the
// input.
#pragma once

#include "device/float_math.hpp"

/// USE(struct, op), for each.
#define LOCKSTEP_ACTIVATIONS(USE) \
  USE(Sigmoid, sigmoid)           \
  USE(Silu, silu)                 \
  USE(Tanh, tanh)

namespace lockstep::ops {

struct Sigmoid {
  static constexpr const char* kDoc = "1 / (1 + e^-x)";
  static constexpr bool kReadsOutput = true;
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
  static constexpr bool kReadsOutput = false;
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
  static constexpr bool kReadsOutput = true;
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
