// What every component of a run is given.
#pragma once

#include "lockstep/trainer.hpp"
#include "observe/rank_context.hpp"

namespace lockstep::train {

/// Cheap to copy; what it refers to must outlive the run.
struct RunContext : observe::RankContext {
  const Registries& registries;
  const TrainerOptions& options;
};

}  // namespace lockstep::train
