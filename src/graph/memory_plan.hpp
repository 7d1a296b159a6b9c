// Static memory plan: which tensors use the memory of others, because a kernel overwrites what it is the last to read,
// and the offsets in one arena of tensors with known lifetimes.
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
  std::int64_t offset = -1;  ///< the result: a multiple of 256
};

/// Sets every offset so that tensors alive at the same instruction do not overlap; returns the arena's size. Greedy:
/// largest first, each into the lowest gap that fits.
std::int64_t plan_memory(std::vector<Lifetime>& tensors);

/// For a program in which Location{arena, i} still means tensor i, with known sizes: converts these to offsets, and
/// sets Program::arena_bytes. `in_place`: kernels overwrite what they are the last to read, if that needs no more
/// memory.
void plan_memory(const Graph& graph, Program& program, std::vector<Lifetime> tensors, bool in_place);

}  // namespace lockstep
