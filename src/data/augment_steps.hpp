// The built-in steps, each in its own file augment_<name>.cpp.
#pragma once

#include "lockstep/augment.hpp"

namespace lockstep::data {

/// The move that changes nothing.
inline PixelMove standing(ImageSize size) {
  PixelMove move;
  move.height = static_cast<std::int32_t>(size.height);
  move.width = static_cast<std::int32_t>(size.width);
  return move;
}

AugmentDef make_flip();
AugmentDef make_crop();
AugmentDef make_center_crop();
AugmentDef make_resize();
AugmentDef make_resized_crop();
AugmentDef make_rotate();
AugmentDef make_color_jitter();
AugmentDef make_cutout();

}  // namespace lockstep::data
