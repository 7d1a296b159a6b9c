// The simulator: the balancer against ranks with made-up or recorded speeds. Time follows the cost model, with noise; a
// decision takes effect two steps later, as in training.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "step/balance/balancer.hpp"

namespace lockstep::balance {

struct Scenario {
  std::string name;
  int ranks = 2;
  int micro_batches = 32;
  int workers = 1;
  int steps = 300;
  /// True seconds per micro-batch of a rank in a step.
  std::function<double(int rank, int step)> seconds_per_micro_batch;
  /// What the rank measures, before noise; empty: the truth.
  std::function<double(int rank, int step)> measured;
  double noise = 0;   ///< standard deviation of a micro-batch's time, relative (log-normal)
  double hiccup = 0;  ///< probability that a micro-batch takes `hiccup_factor` times as long
  double hiccup_factor = 5;
  double reduce = 0.001;       ///< exposed seconds of a partial sum
  double fixed = 0.01;         ///< seconds of the update, at the rank's initial speed
  std::vector<int> unsettled;  ///< steps at which speeds change: the `settling` steps from there on do not count
  int settling = 10;
  std::uint64_t seed = 1;
};

struct SimulationResult {
  double settled = 0;      ///< seconds of all settled steps, divided by those with the best split in each step
  double overall = 0;      ///< the same for all steps
  double equal = 0;        ///< settled, if the split had stayed equal
  double best_static = 0;  ///< settled, for the best split that never changes, relative to the best one in each step
  int moves = 0;
  int micro_batches_moved = 0;
};

/// Ratios are of expected times (without noise): they judge the splits, not the luck of the draw.
[[nodiscard]] SimulationResult simulate(const Scenario& scenario);

/// The scenarios of docs/design/balancing.md: noise, a step change, a ramp, a flapping rank, mixed generations; 4 to
/// 256 ranks.
[[nodiscard]] std::vector<Scenario> standard_scenarios();

/// Recorded measures, seconds[step][rank], replayed repeatedly; their moving median is taken as the truth.
[[nodiscard]] Scenario recorded_scenario(const std::string& name, int micro_batches,
                                         std::vector<std::vector<double>> seconds);

}  // namespace lockstep::balance
