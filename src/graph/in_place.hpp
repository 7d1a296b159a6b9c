// Which tensors stand in the memory of others, because a kernel writes over what it is the last to read.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/memory_plan.hpp"
#include "graph/program.hpp"

namespace lockstep {

/// For a program before its memory is planned: Location{arena, i} is tensor i, and lifetimes are set. Returns whose
/// memory each tensor has, its own or that of an earlier one of its size, whose lifetime then covers both; those that
/// have another's are left with no bytes.
[[nodiscard]] std::vector<std::size_t> share_in_place(const Graph& graph, const Program& program,
                                                      std::vector<Lifetime>& tensors);

}  // namespace lockstep
