// Losses that are a sum over the classes of a row, of a formula of the class's target q and of l, the logarithm of its
// probability (log softmax): a struct each. of() is the term, slope() its derivative by l. With s_k = slope of class k
// and p = softmax(x), the gradient by x is s_k - p_k * (sum of all s). F is a float, or the vectors of
// device/cpu/lanes.hpp. Where q is 0 both are 0, whatever l is. kLabels: targets may be labels.
#pragma once

#include "device/float_math.hpp"

namespace lockstep::ops {

/// Lin, Goyal, Girshick, He and Dollár, "Focal Loss for Dense Object Detection", 2017, by class: -q (1 - p)^power l.
struct FocalTerm {
  static constexpr bool kLabels = true;
  float power;
  explicit FocalTerm(double gamma) : power(gamma) {}

  template <class F>
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F of(const F& q, const F& l) const {
    return device::keep(~device::is_zero_or_less(q), -q * raised(missing(l), power) * l);
  }
  template <class F>
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F slope(const F& q, const F& l) const {
    const F u = missing(l);
    const F s = power * raised(u, power - 1.0F) * device::vector_exp(l) * l - raised(u, power);
    return device::keep(~device::is_zero_or_less(q), q * s);
  }

 private:
  /// 1 - p, accurate where p is near 1.
  template <class F>
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F missing(const F& l) {
    return -device::vector_expm1(l);
  }
  /// u^exponent; 0 for 0, also where the exponent is negative: l, which it is multiplied by, is 0 then.
  template <class F>
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F raised(const F& u, float exponent) {
    return device::keep(~device::is_zero_or_less(u), device::vector_exp(exponent * device::vector_log(u)));
  }
};

/// Kullback and Leibler, "On Information and Sufficiency", 1951: q (log q - l).
struct DivergenceTerm {
  static constexpr bool kLabels = false;
  template <class F>
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F of(const F& q, const F& l) const {
    return device::keep(~device::is_zero_or_less(q), q * (device::vector_log(q) - l));
  }
  template <class F>
  LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F slope(const F& q, const F& /*l*/) const {
    return -q;
  }
};

}  // namespace lockstep::ops
