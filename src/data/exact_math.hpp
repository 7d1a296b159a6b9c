// Logarithm and exponential from additions, multiplications and divisions alone, so that no bit depends on the
// machine's math library. To about 1e-15 of the result.
#pragma once

#include <cmath>

namespace lockstep::data {

/// Of a normal x above 0.
inline double exact_log(double x) {
  constexpr double kLog2 = 0.69314718055994530942, kRoot = 0.70710678118654752440;
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // exact
  if (m < kRoot) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1), square = s * s;
  double series = 0;  // of artanh
  for (int n = 25; n >= 1; n -= 2) series = 1.0 / n + square * series;
  return 2 * s * series + exponent * kLog2;
}

/// 0 for x below -700; x must not be above 700.
inline double exact_exp(double x) {
  constexpr double kLog2 = 0.69314718055994530942;
  if (x < -700) return 0;
  const double k = std::floor(x / kLog2 + 0.5), r = x - k * kLog2;
  double series = 1;
  for (int n = 16; n >= 1; --n) series = 1 + series * r / n;
  return std::ldexp(series, static_cast<int>(k));  // exact
}

}  // namespace lockstep::data
