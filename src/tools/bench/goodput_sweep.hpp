// Many simulated runs: one setup with several seeds and several checkpoint intervals.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/bench/goodput.hpp"

namespace lockstep::bench {

struct Spread {
  double mean = 0;
  double std = 0;  ///< standard deviation over the runs; 0 for a single one
  double min = 0, max = 0;
};

[[nodiscard]] Spread spread_of(std::span<const double> values);

struct GoodputSummary {
  std::int64_t every_steps = 0;  ///< the checkpoint interval
  Spread goodput, wall_seconds, failures;
  GoodputTimes mean_times;
  std::int64_t events = 0;  ///< in all runs
  int unfinished = 0;       ///< runs that were given up
};

/// Runs with the seeds setup.seed, setup.seed + 1, ...
[[nodiscard]] GoodputSummary simulate_seeds(GoodputSetup setup, int seeds);

/// One summary for each interval, in the order given. Runs with the same seed draw the same failures whatever the
/// interval, so that intervals are compared under the same conditions.
[[nodiscard]] std::vector<GoodputSummary> simulate_intervals(GoodputSetup setup,
                                                             std::span<const std::int64_t> every_steps, int seeds);

/// Index of the summary with the highest mean goodput.
[[nodiscard]] std::size_t best_of(std::span<const GoodputSummary> summaries);

}  // namespace lockstep::bench
