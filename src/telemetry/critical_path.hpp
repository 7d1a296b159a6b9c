// What a step waited for: from the timelines of all ranks to the way through them that nothing could have been faster
// than.
//
// The critical rank of a step is the one that came last to the exchange. The way is: what its last worker waited for
// data and computed, what was left of the exchange, and the update. What lies between these (waking workers, calling
// kernels, the loop around it) is the cost of launching work.
#pragma once

#include <cstdint>
#include <vector>

#include "telemetry/rank_trace.hpp"

namespace lockstep::telemetry {

/// Seconds of one step.
struct PathStep {
  std::int64_t step = 0;
  int rank = 0;         ///< the critical one
  double seconds = 0;   ///< until the next step begins, without evaluation and checkpoint; the sum of the others:
  double data = 0;      ///< waiting for input
  double compute = 0;   ///< as much as the ranks' mean: in kernels, and adding gradients up
  double excess = 0;    ///< of the critical rank beyond the mean
  double launch = 0;    ///< between spans, and in shards outside kernels
  double exchange = 0;  ///< that computing does not hide
  double update = 0;
  std::vector<TimelineSpan> spans;  ///< the way, in order of time; none overlap
};

/// Steps that every rank has whole. `traces` are aligned, one for each rank.
[[nodiscard]] std::vector<PathStep> critical_path(const std::vector<RankTrace>& traces);

}  // namespace lockstep::telemetry
