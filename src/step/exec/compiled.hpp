// What kernels need for themselves, and the program compiled with it: executors run it, and plans compute its memory
// without an executor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/parts.hpp"
#include "graph/program.hpp"
#include "lockstep/choices.hpp"
#include "step/exec/kernel_set.hpp"

namespace lockstep::exec {

/// The needs of one node's kernel; zero for a view.
struct KernelNeeds {
  std::size_t workspace = 0;  ///< bytes of scratch memory while it runs
  std::size_t kept = 0;       ///< bytes that it keeps between calls
  bool can_recompute = false;
  bool adds_input_gradient = false, adds_output_gradients = false;  ///< see Kernel
  std::uint64_t adds = 0;  ///< bit i: it can add to an existing gradient of parameter i
};

/// By node.
[[nodiscard]] std::vector<KernelNeeds> needs_of(const KernelSet& kernels);

struct ProgramOptions {
  bool in_place = true;
  Recompute recompute = Recompute::never;
  const PartBoundary* boundary = nullptr;  ///< of a part; null: the graph is a whole model
};

/// `needs`: by node of the graph, which must already be lowered for the device.
[[nodiscard]] Program program_of(const Graph& graph, Mode mode, std::span<const KernelNeeds> needs,
                                 const ProgramOptions& options = {});

}  // namespace lockstep::exec
