// How many ids a shard may have on a GPU.
#pragma once

#include <cstdint>

namespace lockstep::ops {

/// Positions are floats on the way to an id's last one, and floats hold integers exactly up to here.
inline constexpr std::int64_t kMaxPositions = std::int64_t{1} << 24;

/// Throws Error(configuration) where there are more.
void require_gpu_positions(std::int64_t positions);

}  // namespace lockstep::ops
