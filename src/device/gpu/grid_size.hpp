// The number of blocks of a launch, which CUDA takes as 32 bits.
#pragma once

#include <cstdint>
#include <limits>

#include "lockstep/error.hpp"

namespace lockstep::device {

/// A GPU's limit for a grid's first dimension, the only one that our grids have: 5.5e11 elements, or 3.4e10 rows.
inline constexpr std::int64_t kMaxBlocks = std::numeric_limits<std::int32_t>::max();

/// Converts `blocks` for a launch. Throws lockstep::Error if a GPU cannot have so many.
inline std::uint32_t grid_size(std::int64_t blocks) {
  LOCKSTEP_CHECK(blocks > 0 && blocks <= kMaxBlocks, "blocks of a grid on a GPU");
  return blocks;
}

}  // namespace lockstep::device
