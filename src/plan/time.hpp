// How long a step of a placed model takes, by the seconds of its nodes and the rates of the devices.
//
// A step is three phases, one after the other: the shards, the rest of the reduction that they do not hide, the update.
// Of parts the shards are those of the simulation by which training orders its tasks (balance/pipeline). Ranks of a
// host share its cores: a phase lasts at least as long as the processor time of all of them divided by the cores.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/placed_model.hpp"
#include "plan/rates.hpp"

namespace lockstep::plan {

/// A rank's device.
struct RankSpeed {
  const std::vector<NodeSeconds>& nodes;  ///< by node of the whole graph
  const Rates& rates;
};

struct TimeSetup {
  std::vector<RankSpeed> ranks;
  int optimizer_states = 0;
  double update_seconds = 0;  ///< measured, of a trained element; 0: by the rates
  double data_seconds = 0;    ///< of processor time: to read and prepare a shard
  /// Of several ranks: the part by which the shards of a step take longer than undisturbed ones, since each step waits
  /// for the rank that something has just held up.
  double unevenness = 0;
  double step_seconds = 0;  ///< of all that a step does beside: events, scalars, waking threads
};

/// Seconds of a step, of one rank.
struct RankTime {
  double compute = 0;  ///< of a worker
  double waits = 0;    ///< of a worker: for other parts, and for slower ranks
  double reduce = 0;   ///< that compute does not hide
  double update = 0;
  std::int64_t gradient_bytes = 0;    ///< sent in the reduction
  std::int64_t activation_bytes = 0;  ///< sent to other parts, with gradients of activations
};

struct StepTime {
  double seconds = 0;
  std::vector<RankTime> ranks;
};

[[nodiscard]] StepTime time_of(const PlacedModel& placed, const TimeSetup& setup);

/// Seconds of a shard of a part on one worker, forward and backward.
[[nodiscard]] NodeSeconds shard_seconds(const PlacedPart& part, const RankSpeed& speed);

}  // namespace lockstep::plan
