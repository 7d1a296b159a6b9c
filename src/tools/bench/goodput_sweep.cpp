#include "tools/bench/goodput_sweep.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::bench {

namespace {

void add_weighted(GoodputTimes& sum, const GoodputTimes& times, double weight) {
  sum.steps += weight * times.steps;
  sum.reduction += weight * times.reduction;
  sum.stragglers += weight * times.stragglers;
  sum.missing_hosts += weight * times.missing_hosts;
  sum.checkpoints += weight * times.checkpoints;
  sum.lost_work += weight * times.lost_work;
  sum.restarts += weight * times.restarts;
  sum.awaiting_hosts += weight * times.awaiting_hosts;
}

}  // namespace

Spread spread_of(std::span<const double> values) {
  Spread spread;
  if (values.empty()) return spread;
  const double count = values.size();
  for (const double value : values) spread.mean += value / count;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  if (values.size() > 1) spread.std = std::sqrt(squares / (count - 1));
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  spread.min = *min;
  spread.max = *max;
  return spread;
}

GoodputSummary simulate_seeds(GoodputSetup setup, int seeds) {
  GoodputSummary summary{.every_steps = setup.checkpoints.every_steps};
  std::vector<double> goodputs, walls, failures;
  for (int i = 0; i < seeds; ++i, ++setup.seed) {
    const GoodputRun run = simulate_goodput(setup);
    goodputs.push_back(run.goodput());
    walls.push_back(run.wall_seconds);
    failures.push_back(run.failures);
    add_weighted(summary.mean_times, run.times, 1.0 / seeds);
    summary.events += run.events;
    if (!run.finished) ++summary.unfinished;
  }
  summary.goodput = spread_of(goodputs);
  summary.wall_seconds = spread_of(walls);
  summary.failures = spread_of(failures);
  return summary;
}

std::vector<GoodputSummary> simulate_intervals(GoodputSetup setup, std::span<const std::int64_t> every_steps,
                                               int seeds) {
  std::vector<GoodputSummary> summaries;
  for (const std::int64_t every : every_steps) {
    setup.checkpoints.every_steps = every;
    summaries.push_back(simulate_seeds(setup, seeds));
  }
  return summaries;
}

std::size_t best_of(std::span<const GoodputSummary> summaries) {
  const auto best = std::max_element(
      summaries.begin(), summaries.end(),
      [](const GoodputSummary& a, const GoodputSummary& b) { return a.goodput.mean < b.goodput.mean; });
  return best - summaries.begin();
}

}  // namespace lockstep::bench
