// exp, log, tanh, erf and functions derived from them, as branch-free code over `float`, on the CPU and on GPUs, or
// over the vectors of cpu/lanes.hpp. Only +, -, *, / and bit operations: the bits are the same for every instruction
// set and C library, for one float and for sixteen, and on a GPU whose compiler must not contract (nvcc's
// --fmad=false). Polynomials are near-minimax (Chebyshev) fits of the functions named beside them.
//
// `a < b ? x : y` would also work on vectors. But if a vector is wider than a register (16 floats on AVX2), the
// compiler turns it into scalar comparisons; so masks are computed with subtraction and shifts.
//
// The stated accuracy is tested by tests/device/vector_math_test.cpp over the whole range of floats.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/host_device.hpp"
#include "core/vectorize.hpp"

namespace lockstep::device {

/// What the functions below need besides operators: an integer type of the same width, and conversions.
template <class F>
struct Math;

template <>
struct Math<float> {
  using Integer = std::int32_t;
  using Unsigned = std::uint32_t;
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE float to_float(Integer i) { return i; }
};

template <class F>
using IntegerOf = typename Math<F>::Integer;
template <class F>
using UnsignedOf = typename Math<F>::Unsigned;

template <class To, class From>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

/// `F{} + value`: the value in every lane.
template <class F>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F all(float value) {
  return F{} + value;
}

/// All bits set where the sign bit is set.
template <class F>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE IntegerOf<F> sign_mask(const F& x) {
  return bits_as<IntegerOf<F>>(x) >> 31;
}

/// Nonzero where x < bound; meaningless where x is NaN. A GPU has floats only, and its compiler makes one instruction
/// of a mask that is a comparison and of the choose() that it is for.
template <class F>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE IntegerOf<F> is_below(const F& x, float bound) {
#ifdef __CUDA_ARCH__
  return x < bound ? -1 : 0;
#else
  return sign_mask(x - bound);
#endif
}
/// Nonzero where x > bound; see is_below().
template <class F>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE IntegerOf<F> is_above(const F& x, float bound) {
#ifdef __CUDA_ARCH__
  return x > bound ? -1 : 0;
#else
  return sign_mask(bound - x);
#endif
}

constexpr std::int32_t kInfinityBits = 0x7f800000, kMagnitudeBits = 0x7fffffff;

template <class F>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE IntegerOf<F> is_nan(const F& x) {
#ifdef __CUDA_ARCH__
  return x != x ? -1 : 0;
#else
  return (kInfinityBits - (bits_as<IntegerOf<F>>(x) & kMagnitudeBits)) >> 31;
#endif
}
template <class F>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE IntegerOf<F> is_finite(const F& x) {
  return ((bits_as<IntegerOf<F>>(x) & kMagnitudeBits) - kInfinityBits) >> 31;
}

/// Where x <= 0, so not where it is NaN.
template <class F>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE IntegerOf<F> is_zero_or_less(const F& x) {
  const auto bits = bits_as<UnsignedOf<F>>(x);
  return (bits_as<IntegerOf<F>>(bits | (bits - 1U)) >> 31) & ~is_nan(x);
}

/// Where x > 0.
template <class F>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE IntegerOf<F> is_positive(const F& x) {
  const auto bits = bits_as<UnsignedOf<F>>(x);
  const auto not_above = bits_as<IntegerOf<F>>(bits | (bits - 1U)) >> 31;  // negative, or +0
  return ~(not_above | is_nan(x));
}

/// x where the mask is set, else +0.
template <class F>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F keep(const IntegerOf<F>& mask, const F& x) {
  return bits_as<F>(bits_as<IntegerOf<F>>(x) & mask);
}

template <class F>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F choose(const IntegerOf<F>& mask, const F& yes, const F& no) {
  using I = IntegerOf<F>;
  return bits_as<F>((bits_as<I>(yes) & mask) | (bits_as<I>(no) & ~mask));
}

template <class F>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F magnitude_of(const F& x) {
  return bits_as<F>(bits_as<IntegerOf<F>>(x) & kMagnitudeBits);
}

/// magnitude with x's sign.
template <class F>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F with_sign_of(const F& magnitude, const F& x) {
  using I = IntegerOf<F>;
  return bits_as<F>(bits_as<I>(magnitude) | (bits_as<I>(x) & static_cast<std::int32_t>(0x80000000)));
}

/// e^x within 1 ulp; 0 below -87.3365 (results that are not normal), infinity above 88.7228, NaN for NaN.
template <class F>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F vector_exp(const F& x) {
  using U = UnsignedOf<F>;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  const F shifted = x * 1.44269504F + kRound;
  const F n = shifted - kRound;
  const F r = (x - n * 0.693359375F) - n * -2.12194440e-4F;  // n * the first part of ln 2 is exact
  F p = r * 0.00019891080464F + 0.0013933730716F;            // (e^r - 1 - r) / r^2
  p = p * r + 0.0083333108446F;
  p = p * r + 0.041666464197F;
  p = p * r + 0.16666666682F;
  p = p * r + 0.50000000135F;
  p = (p * (r * r) + r) + 1.0F;
  F y = bits_as<F>(bits_as<U>(p) + (bits_as<U>(shifted) << 23));  // meaningless out of range, and then not used
  y = choose(is_below(x, -87.3365F), all<F>(0.0F), y);
  y = choose(is_above(x, 88.7228F), all<F>(__builtin_inff()), y);
  return choose(is_nan(x), x, y);
}

/// Natural logarithm of a normal positive x within 1 ulp; infinity for infinity, NaN for NaN.
template <class F>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F vector_log(const F& x) {
  using I = IntegerOf<F>;
  const I bits = bits_as<I>(x);
  const I exponent = (bits - 0x3f3504f3) >> 23;  // x = m * 2^exponent, m in sqrt(1/2) ... sqrt(2)
  const F f = bits_as<F>(bits - exponent * 0x00800000) - 1.0F;
  const F e = Math<F>::to_float(exponent);
  F p = f * 0.069716114715F - 0.11479733847F;  // (log(1 + f) - f + f^2 / 2) / f^3
  p = p * f + 0.11685419923F;
  p = p * f - 0.12425687331F;
  p = p * f + 0.14249057646F;
  p = p * f - 0.1666780232F;
  p = p * f + 0.20000715749F;
  p = p * f - 0.24999996958F;
  p = p * f + 0.3333333118F;
  const F square = f * f;
  const F tail = (p * (square * f) + e * -2.12194440e-4F) - square * 0.5F;
  const F y = (tail + f) + e * 0.693359375F;
  return choose(is_finite(x), y, x);
}

/// log(1 + x) within 2.5 ulp, for x from 0 to 1.
template <class F>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F vector_log1p(const F& x) {
  const F sum = x + 1.0F;
  const F added = sum - 1.0F;  // what is left of x in the sum, exactly; the rest of it is in the ratio
  return choose(is_positive(added), vector_log(sum) * (x / added), x);
}

/// log(1 + e^x), without overflow, and accurate where it is small.
template <class F>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F vector_softplus(const F& x) {
  return vector_log1p(vector_exp(-magnitude_of(x))) + keep(is_positive(x), x);
}

/// tanh within 1.5 ulp.
template <class F>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F vector_tanh(const F& x) {
  const F magnitude = magnitude_of(x);
  const F s = x * x;
  F p = s * -0.0060451650965F + 0.020961329109F;  // (tanh(x) / x - 1) / x^2, |x| < 0.63
  p = p * s - 0.053843263175F;
  p = p * s + 0.13332718846F;
  p = p * s - 0.33333328433F;
  const F near = x + x * (s * p);
  const F e = vector_exp(magnitude * 2.0F);
  const F far = with_sign_of(1.0F - 2.0F / (e + 1.0F), x);
  return choose(is_below(magnitude, 0.63F), near, far);
}

/// 1 / (1 + e^-x) within 2.5 ulp above -87; 0 below.
template <class F>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F vector_sigmoid(const F& x) {
  return 1.0F / (1.0F + vector_exp(-x));
}

/// e^x - 1 within 4 ulp above -87; -1 below.
template <class F>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F vector_expm1(const F& x) {
  const F e = vector_exp(x);
  return choose(is_below(magnitude_of(x), 1.0F), vector_tanh(x * 0.5F) * (e + 1.0F), e - 1.0F);
}

/// erf within 1.5 ulp.
template <class F>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F vector_erf(const F& x) {
  const F magnitude = magnitude_of(x);
  const F s = x * x;
  F p = s * 7.8758750627e-5F - 0.00080168642872F;  // erf(x) / x - 1, |x| < 1
  p = p * s + 0.0051890874234F;
  p = p * s - 0.026854212011F;
  p = p * s + 0.11283594715F;
  p = p * s - 0.37612626667F;
  p = p * s + 0.12837916585F;
  const F near = x + x * p;
  const F t = choose(is_below(magnitude, 4.0F), magnitude, all<F>(4.0F));
  F q = t * 1.6371514146e-6F - 4.6058042689e-5F;  // log(1 - erf(t)), 1 < t < 4; erf(4) rounds to 1
  q = q * t + 0.00059680562566F;
  q = q * t - 0.0047595962933F;
  q = q * t + 0.026421136006F;
  q = q * t - 0.11008008295F;
  q = q * t - 0.63182605156F;
  q = q * t - 1.1302334348F;
  q = q * t + 0.00032013804968F;
  const F far = with_sign_of(1.0F - vector_exp(q), x);
  return choose(is_below(magnitude, 1.0F), near, choose(is_nan(x), x, far));
}

}  // namespace lockstep::device
