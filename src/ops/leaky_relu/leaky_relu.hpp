// Activations that are x above 0 and something else below, by a setting: a struct each, made once for a kernel. (Those
// without settings are the table in activations/.) gradient() is given the output where kReadsOutput, else the input.
#pragma once

#include "device/float_math.hpp"
#include "lockstep/attributes.hpp"

namespace lockstep::ops {

/// Maas, Hannun and Ng, "Rectifier Nonlinearities Improve Neural Network Acoustic Models", 2013. The gradient at 0 is
/// the slope, as in every framework.
struct LeakyRelu {
  static constexpr bool kReadsOutput = true;
  static constexpr int kCost = 2, kGradientCost = 2;
  float slope;
  explicit LeakyRelu(const Attributes& settings) : slope(static_cast<float>(settings.number("slope"))) {}

  template <class F>
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F of(const F& x) const {
    return device::choose(device::is_positive(x), x, slope * x);
  }
  template <class F>
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F gradient(const F& y, const F& dy) const {
    return device::choose(device::is_positive(y), dy, slope * dy);
  }
};

/// Clevert, Unterthiner and Hochreiter, "Fast and Accurate Deep Network Learning by Exponential Linear Units", 2015.
struct Elu {
  static constexpr bool kReadsOutput = false;
  static constexpr int kCost = 40, kGradientCost = 25;
  float alpha;
  explicit Elu(const Attributes& settings) : alpha(static_cast<float>(settings.number("alpha"))) {}

  template <class F>
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F of(const F& x) const {
    return device::choose(device::is_positive(x), x, alpha * device::vector_expm1(x));
  }
  template <class F>
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F gradient(const F& x, const F& dy) const {
    return device::choose(device::is_positive(x), dy, dy * (alpha * device::vector_exp(x)));
  }
};

}  // namespace lockstep::ops
