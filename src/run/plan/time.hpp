// Predicts the time of a step of a placed model, from the seconds of its nodes and the rates of the devices.
//
// A step has three phases in sequence: the micro-batches, the part of the reduction that they do not hide, the update.
// If the model is cut into parts, the first phase is simulated with the order of tasks that training uses
// (step/balance/pipeline). Ranks of a host share its cores: a phase lasts at least as long as the processor time of all
// of them divided by the cores. They share its network, too: what all of them send to other hosts follows one another.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "lockstep/attributes.hpp"
#include "lockstep/optimizer.hpp"
#include "run/plan/placed_model.hpp"
#include "run/plan/rates.hpp"

namespace lockstep::plan {

/// A rank's device.
struct RankSpeed {
  const std::vector<NodeSeconds>& nodes;  ///< by node of the whole graph
  const Rates& rates;
};

struct TimeSetup {
  std::vector<RankSpeed> ranks;
  int optimizer_states = 0;
  double update_seconds = 0;                ///< measured, per trained element; 0: computed from the rates
  const OptimizerDef* optimizer = nullptr;  ///< null: it makes no steps of whole matrices
  Attributes optimizer_settings = {};       ///< complete
  double data_seconds = 0;                  ///< processor time to read and prepare a micro-batch
  /// With several ranks: the fraction by which the micro-batches of a step take longer than undisturbed ones, since
  /// each step waits for the rank that was disturbed last.
  double unevenness = 0;
  double step_seconds = 0;  ///< for everything else in a step: events, scalars, waking threads
};

/// Seconds of a step on one rank.
struct RankTime {
  double compute = 0;                 ///< of a worker
  double waits = 0;                   ///< of a worker: waiting for other parts, and for slower ranks
  double reduce = 0;                  ///< the part that compute does not hide
  double update = 0;                  ///< with getting what other ranks have updated
  std::int64_t gradient_bytes = 0;    ///< sent: partial sums and finished slices
  std::int64_t parameter_bytes = 0;   ///< sent: updated parameters, or those that ranks divide
  std::int64_t activation_bytes = 0;  ///< received from other parts: activations and gradients of activations
};

struct StepTime {
  double seconds = 0;
  std::vector<RankTime> ranks;
};

/// The simulation of a step of parts. It is the same for all choices that differ in sharding alone.
struct PipelineTimes {
  double seconds = 0;
  std::vector<double> busy;  ///< by worker, rank by rank
  std::vector<int> passes;   ///< by part: waves of its gathers; empty: not needed so far
};
using KnownPipelines = std::map<std::pair<const PartPrograms*, const DealtMicroBatches*>, PipelineTimes>;

/// `known`: simulations of the same model on the same ranks, which it uses and adds to; null: none. What they refer to
/// must be alive.
[[nodiscard]] StepTime time_of(const PlacedModel& placed, const TimeSetup& setup, KnownPipelines* known = nullptr);

/// A time that time_of() is not below, without a simulation; the same if the model is not cut.
[[nodiscard]] double least_time_of(const PlacedModel& placed, const TimeSetup& setup);

/// Seconds per micro-batch of a part on one worker, forward and backward.
[[nodiscard]] NodeSeconds micro_batch_seconds(const PlacedPart& part, const RankSpeed& speed);

}  // namespace lockstep::plan
