// exp, log, tanh, erf and what is made of them, as branch-free float code that a LOCKSTEP_VECTORIZED loop turns
// into vector code. Only +, -, *, / and bit operations: the bits are the same for every instruction set and C
// library. Polynomials are near-minimax (Chebyshev) fits of the functions named beside them.
//
// The stated accuracy is what tests/backend/vector_math_test.cpp demands over the whole range of floats.
#pragma once

#include <bit>
#include <cstdint>

#include "backend/cpu/reduce.hpp"

namespace lockstep::backend {

/// e^x within 1 ulp; 0 below -87.3365 (results that are not normal), infinity above 88.7228, NaN for NaN.
LOCKSTEP_INLINE float vector_exp(float x) {
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  const float clamped = x > -87.3365F ? (x < 88.7228F ? x : 88.7228F) : -87.3365F;
  const float shifted = clamped * 1.44269504F + kRound;
  const float n = shifted - kRound;
  const float r = (clamped - n * 0.693359375F) - n * -2.12194440e-4F;  // n * the first part of ln 2 is exact
  float p = 0.00019891080464F;                                         // (e^r - 1 - r) / r^2
  p = p * r + 0.0013933730716F;
  p = p * r + 0.0083333108446F;
  p = p * r + 0.041666464197F;
  p = p * r + 0.16666666682F;
  p = p * r + 0.50000000135F;
  p = (p * (r * r) + r) + 1.0F;
  const auto bits = std::bit_cast<std::uint32_t>(p) + (std::bit_cast<std::uint32_t>(shifted) << 23);
  float y = std::bit_cast<float>(bits);
  y = x < -87.3365F ? 0.0F : y;
  y = x > 88.7228F ? __builtin_inff() : y;
  return x == x ? y : x;
}

/// Natural logarithm of a normal positive x within 1 ulp; infinity for infinity, NaN for NaN.
LOCKSTEP_INLINE float vector_log(float x) {
  const auto bits = std::bit_cast<std::int32_t>(x);
  const std::int32_t exponent = (bits - 0x3f3504f3) >> 23;  // x = m * 2^exponent, m in sqrt(1/2) ... sqrt(2)
  const float f = std::bit_cast<float>(bits - exponent * 0x00800000) - 1.0F;
  const auto e = static_cast<float>(exponent);
  float p = 0.069716114715F;  // (log(1 + f) - f + f^2 / 2) / f^3
  p = p * f - 0.11479733847F;
  p = p * f + 0.11685419923F;
  p = p * f - 0.12425687331F;
  p = p * f + 0.14249057646F;
  p = p * f - 0.1666780232F;
  p = p * f + 0.20000715749F;
  p = p * f - 0.24999996958F;
  p = p * f + 0.3333333118F;
  const float square = f * f;
  float tail = p * (square * f) + e * -2.12194440e-4F;
  tail = tail - 0.5F * square;
  const float y = (tail + f) + e * 0.693359375F;
  return x < __builtin_inff() ? y : x;
}

/// tanh within 1.5 ulp.
LOCKSTEP_INLINE float vector_tanh(float x) {
  const float magnitude = __builtin_fabsf(x);
  const float s = x * x;
  float p = -0.0060451650965F;  // (tanh(x) / x - 1) / x^2, |x| < 0.63
  p = p * s + 0.020961329109F;
  p = p * s - 0.053843263175F;
  p = p * s + 0.13332718846F;
  p = p * s - 0.33333328433F;
  const float near = x + x * (s * p);
  const float far = __builtin_copysignf(1.0F - 2.0F / (vector_exp(2.0F * magnitude) + 1.0F), x);
  return magnitude < 0.63F ? near : far;
}

/// 1 / (1 + e^-x) within 2.5 ulp above -87; 0 below.
LOCKSTEP_INLINE float vector_sigmoid(float x) { return 1.0F / (1.0F + vector_exp(-x)); }

/// erf within 1.5 ulp.
LOCKSTEP_INLINE float vector_erf(float x) {
  const float magnitude = __builtin_fabsf(x);
  const float s = x * x;
  float p = 7.8758750627e-5F;  // erf(x) / x - 1, |x| < 1
  p = p * s - 0.00080168642872F;
  p = p * s + 0.0051890874234F;
  p = p * s - 0.026854212011F;
  p = p * s + 0.11283594715F;
  p = p * s - 0.37612626667F;
  p = p * s + 0.12837916585F;
  const float near = x + x * p;
  const float t = magnitude < 4.0F ? magnitude : 4.0F;
  float q = 1.6371514146e-6F;  // log(1 - erf(t)), 1 < t < 4; erf(4) rounds to 1
  q = q * t - 4.6058042689e-5F;
  q = q * t + 0.00059680562566F;
  q = q * t - 0.0047595962933F;
  q = q * t + 0.026421136006F;
  q = q * t - 0.11008008295F;
  q = q * t - 0.63182605156F;
  q = q * t - 1.1302334348F;
  q = q * t + 0.00032013804968F;
  const float far = __builtin_copysignf(1.0F - vector_exp(q), x);
  return magnitude < 1.0F ? near : (x == x ? far : x);
}

}  // namespace lockstep::backend
