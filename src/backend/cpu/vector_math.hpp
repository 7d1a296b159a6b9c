// exp, tanh, erf and what is made of them, as branch-free float code that a LOCKSTEP_VECTORIZED loop turns into
// vector code. Only +, -, *, / and bit operations: the bits are the same for every instruction set and C library.
//
// Accuracy, measured by tests/backend/vector_math_test.cpp over the whole range of floats.
#pragma once

#include <bit>
#include <cstdint>

#include "backend/cpu/reduce.hpp"

namespace lockstep::backend {

/// e^x within 1.5 ulp; 0 below -87.3365 (results that are not normal), infinity above 88.7228, NaN for NaN.
LOCKSTEP_INLINE float vector_exp(float x) {
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  const float clamped = x > -87.3365F ? (x < 88.7228F ? x : 88.7228F) : -87.3365F;
  const float shifted = clamped * 1.44269504F + kRound;
  const float n = shifted - kRound;
  const float r = (clamped - n * 0.693359375F) - n * -2.12194440e-4F;  // n * the first part of ln 2 is exact
  float p = 1.0F / 5040;
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = (p * r) * r + r + 1.0F;
  const auto bits = std::bit_cast<std::int32_t>(p) + (std::bit_cast<std::int32_t>(shifted) << 23);
  float y = std::bit_cast<float>(bits);
  y = x < -87.3365F ? 0.0F : y;
  y = x > 88.7228F ? __builtin_inff() : y;
  return x == x ? y : x;
}

}  // namespace lockstep::backend
