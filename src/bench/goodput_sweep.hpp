// Many simulated runs: the same setup with several seeds, and with several checkpoint intervals.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/goodput.hpp"

namespace lockstep::bench {

struct Spread {
  double mean = 0;
  double std = 0;  ///< standard deviation of a run; 0 of one
  double min = 0, max = 0;
};

[[nodiscard]] Spread spread_of(std::span<const double> values);

struct GoodputSummary {
  std::int64_t every_steps = 0;  ///< a checkpoint
  Spread goodput, wall_seconds, failures;
  GoodputTimes mean_times;
  std::int64_t events = 0;  ///< of all runs
  int unfinished = 0;       ///< runs that were given up
};

/// Of runs with the seeds setup.seed, setup.seed + 1, ...
[[nodiscard]] GoodputSummary simulate_seeds(GoodputSetup setup, int seeds);

/// One for each interval, in their order. Runs of one seed have their failures at the same times whatever the interval,
/// so that intervals are compared under the same conditions.
[[nodiscard]] std::vector<GoodputSummary> simulate_intervals(GoodputSetup setup,
                                                             std::span<const std::int64_t> every_steps, int seeds);

/// The one with the highest mean goodput.
[[nodiscard]] std::size_t best_of(std::span<const GoodputSummary> summaries);

}  // namespace lockstep::bench
