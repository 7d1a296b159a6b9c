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

/// For a program before its memory is planned: Location{arena, i} is tensor i, and lifetimes are set. Returns whose
/// memory each tensor has, its own or that of an earlier one of its size, whose lifetime then covers both; those that
/// have another's are left with no bytes.
[[nodiscard]] std::vector<std::size_t> share_in_place(const Graph& graph, const Program& program,
                                                      std::vector<Lifetime>& tensors);

/// Sets every offset so that tensors alive at the same instruction do not overlap; returns the arena's size.
/// Greedy: the largest first, each in the lowest gap that fits.
std::int64_t plan_memory(std::vector<Lifetime>& tensors);

}  // namespace lockstep
