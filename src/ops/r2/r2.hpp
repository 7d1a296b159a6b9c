// r2, the coefficient of determination of all elements of all samples together: 1 - (sum of (x - t)^2) / (sum of (t -
// mean of t)^2), as scikit-learn's r2_score of one output. The mean is known only when all samples are; so a sample
// leaves what the second sum can be made of afterwards. The square of a sum is left in two floats, of which the first
// is exact: targets may be far from 0, compared with how much they differ.
#pragma once

#include <cstdint>

#include "device/float_math.hpp"

namespace lockstep::ops {

/// The values of a sample, in their order.
inline constexpr std::int64_t kResidual = 0;    ///< sum of (x - t)^2
inline constexpr std::int64_t kSum = 1;         ///< sum of t
inline constexpr std::int64_t kSquare = 2;      ///< of that sum, its leading part
inline constexpr std::int64_t kSquareRest = 3;  ///< and the rest
inline constexpr std::int64_t kSpread = 4;      ///< sum of (t - the sample's mean)^2
inline constexpr std::int64_t kSample = 5;      ///< 1
inline constexpr std::int64_t kR2Values = 6;

struct SplitSquare {
  float leading, rest;
};

/// x * x within 2^-34 of it: the leading 12 bits of x have an exact square.
LOCKSTEP_HOST_DEVICE inline SplitSquare split_square(float x) {
  const auto leading = device::bits_as<float>(device::bits_as<std::int32_t>(x) & static_cast<std::int32_t>(0xfffff000));
  return {leading * leading, (x + leading) * (x - leading)};
}

}  // namespace lockstep::ops
