// Losses that are a formula of a prediction's element x and its target t: a struct each, made once for a kernel from
// the op's settings. of() is the loss, gradient() its derivative by x. F is a float, or the vectors of
// device/cpu/lanes.hpp. kBinary: targets are from 0 to 1. kCost and kGradientCost are operations an element.
#pragma once

#include "device/float_math.hpp"
#include "lockstep/attributes.hpp"

namespace lockstep::ops {

struct SquaredError {
  static constexpr bool kBinary = false;
  static constexpr int kCost = 3, kGradientCost = 2;
  explicit SquaredError(const Attributes& /*settings*/) {}

  template <class F>
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F of(const F& x, const F& t) const {
    return (x - t) * (x - t);
  }
  template <class F>
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F gradient(const F& x, const F& t) const {
    return 2.0F * (x - t);
  }
};

/// The gradient where both are equal is 0.
struct AbsoluteError {
  static constexpr bool kBinary = false;
  static constexpr int kCost = 2, kGradientCost = 3;
  explicit AbsoluteError(const Attributes& /*settings*/) {}

  template <class F>
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F of(const F& x, const F& t) const {
    return device::magnitude_of(x - t);
  }
  template <class F>
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F gradient(const F& x, const F& t) const {
    const F difference = x - t;
    const F distance = device::magnitude_of(difference);
    return device::with_sign_of(device::keep(device::is_positive(distance), device::all<F>(1.0F)), difference);
  }
};

/// Huber, "Robust Estimation of a Location Parameter", 1964: a parabola up to delta, and its tangents beyond.
struct HuberError {
  static constexpr bool kBinary = false;
  static constexpr int kCost = 6, kGradientCost = 4;
  float delta;
  explicit HuberError(const Attributes& settings) : delta(settings.number("delta")) {}

  template <class F>
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F of(const F& x, const F& t) const {
    const F distance = device::magnitude_of(x - t);
    return device::choose(device::is_below(distance, delta), 0.5F * distance * distance,
                          delta * (distance - 0.5F * delta));
  }
  template <class F>
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F gradient(const F& x, const F& t) const {
    const F difference = x - t;
    return device::choose(device::is_below(device::magnitude_of(difference), delta), difference,
                          device::with_sign_of(device::all<F>(delta), difference));
  }
};

/// Of s = sigmoid(x), which is never computed by itself, and q, the target after smoothing:
/// -(w q log s + (1 - q) log(1 - s)). A logit far from 0 costs no digits: 1 - s is sigmoid(-x).
struct BinaryCrossEntropy {
  static constexpr bool kBinary = true;
  static constexpr int kCost = 50, kGradientCost = 35;
  float weight, keep, spread;  // q = keep * t + spread
  explicit BinaryCrossEntropy(const Attributes& settings)
      : weight(settings.number("positive_weight")),
        keep(1 - settings.number("label_smoothing")),
        spread(settings.number("label_smoothing") / 2) {}

  template <class F>
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F of(const F& x, const F& t) const {
    const F q = keep * t + spread;
    const F far = device::vector_log1p(device::vector_exp(-device::magnitude_of(x)));
    const F log_positive = far + device::keep(device::is_positive(-x), -x);  // -log s
    const F log_negative = far + device::keep(device::is_positive(x), x);
    return weight * q * log_positive + (1.0F - q) * log_negative;
  }
  template <class F>
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F gradient(const F& x, const F& t) const {
    const F q = keep * t + spread;
    return (1.0F - q) * device::vector_sigmoid(x) - weight * q * device::vector_sigmoid(-x);
  }
};

/// Lin, Goyal, Girshick, He and Dollár, "Focal Loss for Dense Object Detection", 2017: binary cross entropy whose terms
/// are multiplied by a power, the focal setting, of what is missing to 1: -(w q (1 - s)^f log s + (1 - q) s^f log(1 -
/// s)). The powers are made of the logarithms.
struct FocalBinaryCrossEntropy {
  static constexpr bool kBinary = true;
  static constexpr int kCost = 95, kGradientCost = 130;
  BinaryCrossEntropy plain;
  float power;
  explicit FocalBinaryCrossEntropy(const Attributes& settings) : plain(settings), power(settings.number("focal")) {}

  template <class F>
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F of(const F& x, const F& t) const {
    const F q = plain.keep * t + plain.spread;
    const F log_positive = device::vector_softplus(-x), log_negative = device::vector_softplus(x);
    return plain.weight * q * (device::vector_exp(-power * log_negative) * log_positive) +
           (1.0F - q) * (device::vector_exp(-power * log_positive) * log_negative);
  }
  template <class F>
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F gradient(const F& x, const F& t) const {
    const F q = plain.keep * t + plain.spread;
    const F s = device::vector_sigmoid(x), rest = device::vector_sigmoid(-x);
    const F log_positive = device::vector_softplus(-x), log_negative = device::vector_softplus(x);
    const F of_positive = device::vector_exp(-power * log_negative) * (power * s * log_positive + rest);
    const F of_negative = device::vector_exp(-power * log_positive) * (power * rest * log_negative + s);
    return (1.0F - q) * of_negative - plain.weight * q * of_positive;
  }
};

}  // namespace lockstep::ops
