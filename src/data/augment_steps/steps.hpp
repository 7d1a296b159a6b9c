// The built-in steps: each has a file of its own here, which CMake finds and lists.
#pragma once

#include "lockstep/augment.hpp"

namespace lockstep::data {

/// The move that changes nothing.
inline PixelMove standing(ImageSize size) {
  PixelMove move;
  move.height = size.height;
  move.width = size.width;
  return move;
}

void add_built_in(AugmentRegistry& registry);

/// Of a step that is taken for some samples only.
inline AttributeSpec probability_attribute(double default_value) {
  return {.name = "probability",
          .kind = AttributeKind::number,
          .doc = "how often",
          .default_value = default_value,
          .minimum = 0,
          .maximum = 1};
}

/// Luma with the weights of ITU-R BT.601; the first channel if there are not three.
inline std::int64_t luma(const std::uint8_t* pixel, std::int64_t channels) {
  if (channels != 3) return pixel[0];
  return (299 * pixel[0] + 587 * pixel[1] + 114 * pixel[2] + 500) / 1000;
}

}  // namespace lockstep::data
