// Shared by `lockstep sweep` and `lockstep ensemble train`: where trials compute, and which of them is better.
#pragma once

#include <string>

#include "config/sweep.hpp"
#include "lockstep/job.hpp"
#include "lockstep/trainer.hpp"
#include "tools/sweep/sweep.hpp"

namespace lockstep::cli {

/// What a command calls its options, for messages.
struct PlaceOptionNames {
  const char* ranks_per_trial;  ///< "--ranks-per-trial"
  const char* trials_per_gpu;   ///< "--trials-per-gpu"
};

/// Throws Error(usage) if trials of several ranks were to share GPUs, or if there are none to share.
void check_sharing(const JobFile& job, PlaceOptionNames names, const sweep::SweepRunOptions& options);

/// Sets the ranks, GPUs and threads of `options`. On the CPU a rank is a core, or as many as the job says that a rank
/// has threads. With device: cuda it is a GPU, or one of `trials_per_gpu` on it; or a slice, where CUDA_VISIBLE_DEVICES
/// names slices (MIG) and the job no `devices`. `ranks`: the value of --ranks. Throws Error(usage).
void place_trials(const JobFile& job, const std::string& ranks, PlaceOptionNames names,
                  sweep::SweepRunOptions& options);

/// Whether more is better of a metric or of the loss.
[[nodiscard]] Direction better_direction(const std::string& metric, const Registries& registries);

}  // namespace lockstep::cli
