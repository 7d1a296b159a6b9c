// What kernels need for themselves, and the program that follows from it: what an executor runs, and what a plan counts
// the memory of, without one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "exec/kernel_set.hpp"
#include "graph/parts.hpp"
#include "graph/program.hpp"
#include "lockstep/choices.hpp"

namespace lockstep::exec {

/// Of one node's kernel; of a view, nothing.
struct KernelNeeds {
  std::size_t workspace = 0;  ///< bytes of scratch while it runs
  std::size_t kept = 0;       ///< bytes that it keeps from call to call
  bool can_recompute = false;
  std::uint64_t adds = 0;  ///< bit i: it can add the gradient of parameter i to what the memory holds
};

/// By node.
[[nodiscard]] std::vector<KernelNeeds> needs_of(const KernelSet& kernels);

struct ProgramOptions {
  bool in_place = true;
  Recompute recompute = Recompute::never;
  const PartBoundary* boundary = nullptr;  ///< of a part; null: the graph is whole
};

/// `needs`: by node of the graph, which is as the device computes it.
[[nodiscard]] Program program_of(const Graph& graph, Mode mode, std::span<const KernelNeeds> needs,
                                 const ProgramOptions& options = {});

}  // namespace lockstep::exec
