// Checks, before anything is allocated, that each rank may have the memory that it needs at least.
#pragma once

#include "run/train/balancing.hpp"
#include "run/train/engine.hpp"

namespace lockstep::train {

/// Collective. Throws Error(configuration) on all ranks, with a table and the placement that needs least, if a rank's
/// parameters, gradients, optimizer states and activations exceed the limit of its cgroup or process. Ranks without a
/// limit are not checked, nor is GPU memory (see Backend::place_data).
void require_memory(const Run& run, const Engine& engine, const Balancing& balancing);

}  // namespace lockstep::train
