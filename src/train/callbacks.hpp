// How a run calls its callbacks.
#pragma once

#include "lockstep/callback.hpp"
#include "train/run_context.hpp"

namespace lockstep::train {

using CallbackMoment = void (Callback::*)(TrainingState&);

/// Calls this function of all callbacks, then hands what the first rank's have asked for to all; every rank calls it
/// with the same numbers. Throws Error(usage) on all ranks for a factor that no learning rate can be multiplied by.
void call_back(const RunContext& run, CallbackMoment moment, TrainingState& state);

}  // namespace lockstep::train
