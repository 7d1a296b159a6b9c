// Static memory plan: which tensors stand in the memory of others, because a kernel writes over what it is the last to
// read, and where in one arena tensors with known lifetimes stand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/program.hpp"

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

/// Of a program in which Location{arena, i} is still tensor i, of which the sizes are known: makes offsets of these,
/// and sets Program::arena_bytes. `in_place`: kernels write over what they are the last to read, where that takes no
/// more memory.
void plan_memory(const Graph& graph, Program& program, std::vector<Lifetime> tensors, bool in_place);

}  // namespace lockstep
