// Resampling of byte images with a triangle filter that widens when it shrinks (so no pixel is skipped), in fixed
// point: the same bytes on every machine. Of masks the nearest pixel is taken.
#pragma once

#include "lockstep/augment.hpp"

namespace lockstep::data {

/// A rectangle of whole pixels.
struct Box {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};

/// Replaces the image by its part `box`, resampled to this size. `box` must be within the image.
void resample(Image& image, const Box& box, std::int64_t height, std::int64_t width);

/// The attribute `size` of several steps: one number for a square, or height and width.
[[nodiscard]] AttributeSpec size_attribute(const char* doc);
[[nodiscard]] ImageSize size_of(const Attributes& attributes, const char* step);

}  // namespace lockstep::data
