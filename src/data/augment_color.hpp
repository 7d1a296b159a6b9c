// Brightness, contrast and saturation, in fixed point; values are rounded to bytes after each.
#pragma once

#include <cmath>
#include <cstdint>

#include "lockstep/augment.hpp"

namespace lockstep::data {

inline constexpr int kFactorBits = 16;
inline constexpr std::int64_t kFactorOne = std::int64_t{1} << kFactorBits;
/// A factor in fixed point, as the functions below take it.
inline std::int64_t fixed_factor(float factor) {
  return std::floor(factor * kFactorOne + 0.5F);
}

/// `origin` + factor * (value - origin).
[[nodiscard]] std::uint8_t away_from(std::int64_t origin, std::int64_t value, std::int64_t factor);
/// Multiplies all values.
void change_brightness(Image& image, std::int64_t factor);
/// Multiplies the distance of all values from the image's mean gray.
void change_contrast(Image& image, std::int64_t factor);
/// Multiplies the distance of a pixel's values from its gray; only images of three channels have colors.
void change_saturation(Image& image, std::int64_t factor);

}  // namespace lockstep::data
