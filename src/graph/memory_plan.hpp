// Static memory plan: places tensors with known lifetimes in one arena.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

struct Lifetime {
  std::int64_t bytes = 0;
  std::int32_t first = 0;    ///< instruction that writes it
  std::int32_t last = 0;     ///< last instruction that reads it
  std::int64_t offset = -1;  ///< the result, a multiple of 256
};

/// Sets every offset so that tensors alive at the same instruction do not overlap; returns the arena's size.
/// Greedy: the largest first, each in the lowest gap that fits.
std::int64_t plan_memory(std::vector<Lifetime>& tensors);

}  // namespace lockstep
