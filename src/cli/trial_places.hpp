// Shared by `lockstep sweep` and `lockstep ensemble train`: where trials compute, and which of them is better.
#pragma once

#include <string>

#include "config/sweep.hpp"
#include "lockstep/job.hpp"
#include "lockstep/trainer.hpp"
#include "sweep/sweep.hpp"

namespace lockstep::cli {

/// Sets the ranks, GPUs and threads of `options`. On the CPU a rank is a core, or as many as the job says that a rank
/// has threads; with device: cuda it is a GPU. `ranks`: the value of --ranks; `per_trial`: the option's name, for
/// messages. Throws Error(usage).
void place_trials(const JobFile& job, const std::string& ranks, const char* per_trial, sweep::SweepRunOptions& options);

/// Whether more is better of a metric or of the loss.
[[nodiscard]] Direction better_direction(const std::string& metric, const Registries& registries);

}  // namespace lockstep::cli
