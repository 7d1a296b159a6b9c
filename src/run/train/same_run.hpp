// Whether a checkpoint is of this run, so that the run may go on from it.
#pragma once

#include <cstdint>

#include "config/config.hpp"
#include "data/input/prepared_data.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/checkpoint/saved_model.hpp"
#include "run/train/run_context.hpp"

namespace lockstep::train {

/// Steps of a run of this length; 0 if it rounds to none.
[[nodiscard]] std::int64_t total_steps(const config::RunLength& length, std::int64_t steps_per_epoch);

/// Throws Error(configuration) that names the differences if the checkpoint's job computes other bits than `run`, whose
/// length is `steps`. A job of another length computes the same up to the checkpoint if the schedule has the same
/// learning rate for each step until then: always where the rate does not depend on the length, as with `constant`,
/// and before the decay begins with `wsd`. With TrainerOptions::change_settings, the length and settings may differ
/// that can change between two steps, whatever the rates were.
void require_same_run(const RunContext& run, std::int64_t steps, std::int64_t steps_per_epoch,
                      const checkpoint::Checkpoint& checkpoint);

/// Throws Error(configuration) if the model of job.initialize has learned to read samples in another way than this job
/// does, or has the data's classes in another order, and the job takes all of its weights. Returns a warning if its
/// classes have other names; else "".
[[nodiscard]] std::string require_same_reading(const Job& job, const checkpoint::Initialized& initialized,
                                               const input::PreparedData& data);

}  // namespace lockstep::train
