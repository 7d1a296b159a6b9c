// The lists of built-in optimizers and schedules; written by CMake from the files in the folders beside this file.
#pragma once

#include "lockstep/optimizer.hpp"
#include "lockstep/schedule.hpp"

namespace lockstep::optim {

void add_built_in(OptimizerRegistry& registry);
void add_built_in(ScheduleRegistry& registry);

}  // namespace lockstep::optim
