// Activations given by a formula. Each is a struct here and a line in the list below; CMake and the files beside this
// one generate its op, its kernels for CPUs and GPUs, and its cases. (gelu saves its slope, so it has a folder of its
// own.)
//
// F is float, or, if kOverLanes, also the vectors of device/cpu/lanes.hpp. gradient() gets the output if kReadsOutput,
// else the input. kCost and kGradientCost are operations per element. A formula with a setting is constructed from the
// op's attributes, and setting() declares it.
#pragma once

#include <type_traits>

#include "device/float_math.hpp"
#include "lockstep/attributes.hpp"

/// USE(struct, op) for each activation.
#define LOCKSTEP_ACTIVATIONS(USE) \
  USE(Elu, elu)                   \
  USE(Hardswish, hardswish)       \
  USE(LeakyRelu, leaky_relu)      \
  USE(Relu, relu)                 \
  USE(Relu6, relu6)               \
  USE(Sigmoid, sigmoid)           \
  USE(Silu, silu)                 \
  USE(Softplus, softplus)         \
  USE(Tanh, tanh)

namespace lockstep::ops {

/// Whether an op's attributes set something in the formula.
template <class Formula>
inline constexpr bool kHasSetting = std::is_constructible_v<Formula, const Attributes&>;

template <class Formula>
Formula formula_of(const Attributes& attributes) {
  if constexpr (kHasSetting<Formula>) {
    return Formula(attributes);
  } else {
    return {};
  }
}

/// Clevert, Unterthiner and Hochreiter, "Fast and Accurate Deep Network Learning by Exponential Linear Units", 2015.
struct Elu {
  static constexpr const char* kDoc = "x above 0, alpha (e^x - 1) below";
  static constexpr bool kReadsOutput = false, kOverLanes = true;
  static constexpr int kCost = 40, kGradientCost = 25;
  float alpha;
  explicit Elu(const Attributes& attributes) : alpha(attributes.number("alpha")) {}
  static AttributeSpec setting() {
    return {.name = "alpha",
            .kind = AttributeKind::number,
            .doc = "minus this is the limit",
            .default_value = 1.0,
            .minimum = 0};
  }
  template <class F>
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F of(const F& x) const {
    return device::choose(device::is_positive(x), x, alpha * device::vector_expm1(x));
  }
  template <class F>
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F gradient(const F& x, const F& dy) const {
    return device::choose(device::is_positive(x), dy, dy * (alpha * device::vector_exp(x)));
  }
};

/// Howard and others, "Searching for MobileNetV3", 2019: silu made of straight lines and a parabola.
struct Hardswish {
  static constexpr const char* kDoc = "x times (x + 3 cut to 0 ... 6) / 6";
  static constexpr bool kReadsOutput = false, kOverLanes = false;
  static constexpr int kCost = 5, kGradientCost = 5;
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float of(float x) {
    const float shifted = x + 3.0F;
    return x * (shifted < 0.0F ? 0.0F : shifted > 6.0F ? 6.0F : shifted) * (1.0F / 6.0F);
  }
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float gradient(float x, float dy) {
    const float slope = x * (1.0F / 3.0F) + 0.5F;
    return dy * (x < -3.0F ? 0.0F : x > 3.0F ? 1.0F : slope);
  }
};

/// Maas, Hannun and Ng, "Rectifier Nonlinearities Improve Neural Network Acoustic Models", 2013. The gradient at 0 is
/// the slope, as in every framework.
struct LeakyRelu {
  static constexpr const char* kDoc = "x above 0, a share of x below";
  static constexpr bool kReadsOutput = true, kOverLanes = true;
  static constexpr int kCost = 2, kGradientCost = 2;
  float slope;
  explicit LeakyRelu(const Attributes& attributes) : slope(attributes.number("slope")) {}
  static AttributeSpec setting() {
    return {.name = "slope",
            .kind = AttributeKind::number,
            .doc = "factor below 0; Keras has 0.3",
            .default_value = 0.01,
            .minimum = 0};
  }
  template <class F>
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F of(const F& x) const {
    return device::choose(device::is_positive(x), x, slope * x);
  }
  template <class F>
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F gradient(const F& y, const F& dy) const {
    return device::choose(device::is_positive(y), dy, slope * dy);
  }
};

/// The gradient at 0 is 0, and a NaN stays one, as in other frameworks. Not over lanes: the compiler vectorises a plain
/// loop of comparisons, but not a comparison of vectors that are wider than a register.
struct Relu {
  static constexpr const char* kDoc = "max(x, 0)";
  static constexpr bool kReadsOutput = true, kOverLanes = false;
  static constexpr int kCost = 1, kGradientCost = 1;
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float of(float x) { return x <= 0 ? 0 : x; }
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float gradient(float y, float dy) { return y <= 0 ? 0 : dy; }
};

/// Krizhevsky, "Convolutional Deep Belief Networks on CIFAR-10", 2010. The gradient at both bends is 0.
struct Relu6 {
  static constexpr const char* kDoc = "x cut to 0 ... 6";
  static constexpr bool kReadsOutput = true, kOverLanes = false;
  static constexpr int kCost = 2, kGradientCost = 2;
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float of(float x) {
    const float positive = x <= 0 ? 0 : x;
    return positive >= 6 ? 6 : positive;
  }
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float gradient(float y, float dy) {
    const float above = y <= 0 ? 0 : dy;
    return y >= 6 ? 0 : above;
  }
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

struct Softplus {
  static constexpr const char* kDoc = "log(1 + e^x)";
  static constexpr bool kReadsOutput = false, kOverLanes = true;
  static constexpr int kCost = 45, kGradientCost = 20;
  template <class F>
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F of(const F& x) {
    return device::vector_softplus(x);
  }
  template <class F>
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F gradient(const F& x, const F& dy) {
    return dy * device::vector_sigmoid(x);
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
