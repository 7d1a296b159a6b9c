// What an update on a GPU allocates there, from sizes alone: GpuUpdater asks before it begins, and plans ask without a
// GPU.
#pragma once

#include <cstddef>
#include <vector>

#include "lockstep/graph.hpp"
#include "lockstep/optimizer.hpp"
#include "step/exec/gpu_tensors.hpp"
#include "step/exec/memory_needs.hpp"
#include "step/optim/updater.hpp"

namespace lockstep::optim {

/// A rank's share of a model, or of a part of it.
struct GpuUpdateSizes {
  const Graph& graph;
  const OptimizerDef& optimizer;
  const std::vector<OptimizerState>& states;
  exec::KeptElements parameters;  ///< by parameter: those in its memory
  exec::KeptElements updated;     ///< by parameter: those that it updates
  bool is_divided = false;        ///< other ranks update the others
  std::size_t matrices = 0;       ///< bytes that steps of whole matrices are made with (MatrixMakers::gpu_bytes())
};

/// Parameters and their copies, the gradient, the optimizer's states, what it makes steps of whole matrices with, and
/// the tables that kernels read. Without what other components allocate: GpuGathers, GpuOtherParts, GpuChunkNumbers.
[[nodiscard]] std::vector<exec::MemoryNeed> needs_of_update(const GpuUpdateSizes& sizes);

/// Of all matrices: what adafactor makes their steps with.
[[nodiscard]] std::size_t adafactor_bytes(const Graph& graph, const OptimizerDef& optimizer, bool is_divided);

/// Whether adafactor's kernels read a copy of the gradient of this parameter.
[[nodiscard]] bool copies_gradient(const Graph& graph, std::size_t parameter, bool is_divided);

}  // namespace lockstep::optim
