// Who waited, and for whom: added up over a run from the measures of each step.
#pragma once

#include <span>
#include <vector>

#include "balance/measure.hpp"

namespace lockstep::balance {

/// Seconds of a rank. They are of the main thread or of one worker: data is what its workers waited, by their number.
struct RankTimes {
  double compute = 0;  ///< of its workers, by their number
  double data = 0;     ///< its workers waited for inputs
  double waited = 0;   ///< for ranks that came later to the all-reduce
  double reduce = 0;   ///< the all-reduce itself, as far as compute did not hide it
  double update = 0;   ///< parameters
  double held_up = 0;  ///< others waited for this one, which came last; their mean
};

class Waiting {
 public:
  explicit Waiting(std::vector<int> workers) : workers_(std::move(workers)), times_(workers_.size()) {}
  void add(std::span<const RankMeasure> ranks);
  [[nodiscard]] const std::vector<RankTimes>& times() const { return times_; }

 private:
  std::vector<int> workers_;
  std::vector<RankTimes> times_;
};

}  // namespace lockstep::balance
