// The lists of built-in optimizers and schedules; written by CMake from the files in the folders beside this file.
#pragma once

#include <string>

#include "lockstep/optimizer.hpp"
#include "lockstep/schedule.hpp"

namespace lockstep::optim {

void add_built_in(OptimizerRegistry& registry);
void add_built_in(ScheduleRegistry& registry);

/// Whether GPUs compute the optimizer with this name: built-in ones that have a formula, or kernels of their own
/// (elementwise.hpp).
[[nodiscard]] bool is_on_gpus(const std::string& optimizer);

}  // namespace lockstep::optim
