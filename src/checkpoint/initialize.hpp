// `initialize`: first values from a safetensors file, for fine-tuning.
#pragma once

#include "lockstep/job.hpp"
#include "optim/updater.hpp"

namespace lockstep::checkpoint {

/// Overwrites the parameters and states that the job's patterns choose (all without patterns). Throws Error(data) when
/// the file lacks one or has it in another shape, Error(configuration) when a pattern chooses none; `place` is where
/// the patterns were written.
void initialize_from_file(const InitializeOptions& options, const Place& place, optim::Model& model);

}  // namespace lockstep::checkpoint
