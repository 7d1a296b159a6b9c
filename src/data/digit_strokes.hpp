// How the ten digits are written: a few styles each, as strokes through control points.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::data {

/// In a box of 100 x 100 units; y grows downwards.
struct StrokePoint {
  std::int8_t x, y;
};

struct Stroke {
  bool smooth;  ///< a curve through the points (Catmull-Rom), else straight lines between them
  std::vector<StrokePoint> points;
};

using DigitStyle = std::vector<Stroke>;

/// The styles of digit 0 ... 9.
[[nodiscard]] std::span<const DigitStyle> digit_styles(int digit);

}  // namespace lockstep::data
