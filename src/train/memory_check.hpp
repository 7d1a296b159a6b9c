// Whether each rank may have the memory that it needs at least, asked before any of it is there.
#pragma once

#include "train/balancing.hpp"
#include "train/engine.hpp"

namespace lockstep::train {

/// Every rank calls it. Throws Error(configuration) on all of them, with a table and the placement that needs least,
/// where the cgroup or the limits of a rank's process are below what its parameters, gradients, optimizer states and
/// activations take. Ranks without a limit, and GPUs, are not judged (a GPU's memory is: Backend::place_data).
void require_memory(const Run& run, const Engine& engine, const Balancing& balancing);

}  // namespace lockstep::train
