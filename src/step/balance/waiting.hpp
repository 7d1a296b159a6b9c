// Which ranks waited, and for whom: summed over a run from the measurements of each step.
#pragma once

#include <span>
#include <vector>

#include "step/balance/measure.hpp"

namespace lockstep::balance {

/// Seconds of a rank's main thread, or the mean over its workers.
struct RankTimes {
  double compute = 0;  ///< mean over its workers
  double data = 0;     ///< mean over its workers: waiting for inputs
  double waited = 0;   ///< for ranks that arrived later at the all-reduce
  double reduce = 0;   ///< the all-reduce itself, where compute did not hide it
  double update = 0;   ///< of parameters
  double held_up = 0;  ///< how long the others waited for this rank when it came last, on average
};

class Waiting {
 public:
  explicit Waiting(std::vector<int> workers) : workers_(std::move(workers)), times_(workers_.size()) {}
  void add(std::span<const RankMeasure> ranks);
  const std::vector<RankTimes>& times() const { return times_; }

 private:
  std::vector<int> workers_;
  std::vector<RankTimes> times_;
};

}  // namespace lockstep::balance
