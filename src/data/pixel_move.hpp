// Moves of pixels, for one pixel: what a GPU's thread does. MoveStep::apply() does the same row by row.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"
#include "lockstep/augment.hpp"

namespace lockstep::data {

/// Makes of a place in the moved image the place in the image before; false: it is black.
LOCKSTEP_HOST_DEVICE inline bool trace_back(const PixelMove& move, std::int64_t& y, std::int64_t& x) {
  const PixelRectangle& hole = move.hole;
  if (y >= hole.top && y < hole.bottom && x >= hole.left && x < hole.right) return false;
  y += move.down;
  x += move.right;
  if (y < 0 || y >= move.height || x < 0 || x >= move.width) return false;
  if (move.flip != 0) x = move.width - 1 - x;
  return true;
}

}  // namespace lockstep::data
