// The job's own kernels in the fingerprint: every rank computes the first shard of the first step, and they compare.
#pragma once

#include <string>

#include "checkpoint/progress.hpp"
#include "exec/executor.hpp"
#include "input/prepared_data.hpp"
#include "train/run_context.hpp"

namespace lockstep::train {

/// Collective, after begin_progress(): adds the hash of shard 0 of step 0 (shard_hash.hpp), with its samples as this
/// rank reads them, to the fingerprint of `progress`, and compares it between the ranks as begin_progress() compares
/// the rest of it. Returns the seconds that this rank computed. With `exact: never` there is nothing to compare; on a
/// GPU it is not done: memory there is planned to the last MiB, and what this takes is not in the plan.
double compare_first_shard(const RunContext& run, const input::PreparedData& data, const Graph& graph,
                           const exec::ExecutorOptions& how, checkpoint::Progress& progress);

}  // namespace lockstep::train
