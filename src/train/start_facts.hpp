// What a run is, before its first step: facts that all ranks must share, and that its checkpoints keep.
#pragma once

#include "train/checkpoint.hpp"
#include "train/prepared_data.hpp"
#include "train/run_context.hpp"

namespace lockstep::train {

/// The progress of a run that has done nothing yet. Compares job, data, program and libraries between the ranks;
/// throws Error(usage) that names the rank and host that differ.
[[nodiscard]] Progress begin_progress(const RunContext& run, const PreparedData& data);

}  // namespace lockstep::train
