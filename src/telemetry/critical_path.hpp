// What limits a step: the critical path through the timelines of all ranks.
//
// The critical rank of a step is the one that reached the all-reduce last. The path is: its last worker's waiting for
// data and computing, the exposed part of the all-reduce, and the update. What lies between these (waking workers,
// calling kernels, the loop around it) is the cost of launching work.
#pragma once

#include <cstdint>
#include <vector>

#include "telemetry/rank_trace.hpp"

namespace lockstep::telemetry {

/// Seconds of one step.
struct PathStep {
  std::int64_t step = 0;
  int rank = 0;        ///< the critical rank
  double seconds = 0;  ///< until the next step begins, without evaluation and checkpoint; the sum of the others:
  double data = 0;     ///< waiting for input
  double compute = 0;  ///< up to the ranks' mean: in kernels, and adding up gradients
  double excess = 0;   ///< of the critical rank beyond the mean
  double launch = 0;   ///< between spans, and in shards outside kernels
  double reduce = 0;   ///< that computing does not hide
  double update = 0;
  std::vector<TimelineSpan> spans;  ///< the path, in order of time; none overlap
};

/// Of the steps that every rank has traced completely. `traces` are aligned, one for each rank.
[[nodiscard]] std::vector<PathStep> critical_path(const std::vector<RankTrace>& traces);

}  // namespace lockstep::telemetry
