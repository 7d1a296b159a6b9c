// What a checkpoint takes of each rank's memory: the copy of the files that the rank writes.
#pragma once

#include <vector>

#include "run/plan/memory.hpp"

namespace lockstep::plan {

/// Adds to `ranks` what each writes, by the layout of training (run/checkpoint/layout.hpp).
void add_checkpoint_memory(const PlacedModel& placed, const MemorySetup& setup, std::vector<RankMemory>& ranks);

}  // namespace lockstep::plan
