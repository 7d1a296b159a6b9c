// The memory of GPUs, as the components say that allocate it there (step/optim/gpu_update_memory.hpp,
// comm::GpuAllReduce, exec::GpuGathers), and as training checks it before it begins (run/train/device_choice.cpp).
#pragma once

#include <vector>

#include "run/plan/memory.hpp"

namespace lockstep::plan {

/// By rank. Ranks of a part that have equally many micro-batches are equal: the one with the largest slices is counted.
/// What a rank has in its host's memory, such as the copy that a checkpoint writes, does not count. The workspace of
/// kernels is that of the device for which the model has been lowered.
[[nodiscard]] std::vector<RankMemory> gpu_memory_of(const PlacedModel& placed, const MemorySetup& setup);

}  // namespace lockstep::plan
