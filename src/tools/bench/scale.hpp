// What a step costs a rank, for up to thousands of ranks, in the parts that grow with their number: the gradient's
// all-reduce, a decision of the balancer, a turn of the supervisor's loop. Uses neither MPI nor a network.
#pragma once

#include <cstdint>

#include "tools/bench/reduce_scale.hpp"

namespace lockstep::bench {

// What one turn of the supervisor's loop costs: the supervisor's ends of the control sockets are real, and one process
// speaks for all ranks at the other ends.

struct SupervisorTurn {
  double seconds = 0;       ///< CPU time of the median turn
  int beats = 0;            ///< heartbeats that arrive in one turn
  double beat_seconds = 0;  ///< between two heartbeats of one rank
};

/// Measures turns as `lockstep launch` runs them while nothing goes wrong: 20 per second. Starts and ends a process, so
/// no other threads may run. Throws Error(usage) if the limit on open files is lower than the number of ranks.
[[nodiscard]] SupervisorTurn measure_supervisor_turn(int ranks);

struct ScaleOptions {
  int ranks = 16'384;  ///< the largest number
  int ranks_a_host = 8;
  int micro_batches_a_rank = 4;
  std::uint64_t gradient_bytes = 100U << 20U;
};

struct ScaleRow {
  int ranks = 0;
  ReduceScale reduce;
  double decision_seconds = 0;  ///< CPU time
  SupervisorTurn turn;
};

/// With `ranks` ranks. Throws as measure_supervisor_turn() does.
[[nodiscard]] ScaleRow measure_scale(const ScaleOptions& options, int ranks);

}  // namespace lockstep::bench
