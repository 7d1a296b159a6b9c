// Affine maps of an image about its middle, bilinear, black outside; of masks the nearest pixel is taken. Sine and
// cosine are our own polynomials, and sampling is in fixed point, so that the bytes do not depend on the machine's math
// library.
#pragma once

#include <cstdint>

#include "lockstep/augment.hpp"

namespace lockstep::data {

/// Pixel (y, x) of the result, from the middle, is pixel (yy y + yx x + down, xy y + xx x + right) of the image.
struct Affine {
  double yy = 1, yx = 0, xy = 0, xx = 1;
  double down = 0, right = 0;  ///< in pixels
};
[[nodiscard]] Affine turn_by(double degrees);
void move_pixels(Image& image, const Affine& map);

}  // namespace lockstep::data
