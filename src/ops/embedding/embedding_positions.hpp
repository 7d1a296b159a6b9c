// How many ids a micro-batch may have on a GPU.
#pragma once

#include <cstdint>

namespace lockstep::ops {

/// The kernel that finds an id's last position computes with floats, which represent integers exactly up to here.
inline constexpr std::int64_t kMaxPositions = std::int64_t{1} << 24;

/// Throws Error(configuration) if there are more.
void require_gpu_positions(std::int64_t positions);

}  // namespace lockstep::ops
