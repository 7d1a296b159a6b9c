// What reducing gradients costs a rank of a large cluster, measured on one machine: the ranks of one host are real,
// all others are simulated.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/communicator.hpp"
#include "tools/bench/reduce_times.hpp"

namespace lockstep::bench {

/// Steps with `counts` micro-batches by rank, then with `moved`, as after a decision of the balancer.
struct ScaleLoad {
  ReduceLoad reduce;
  Topology topology;
  std::vector<int> counts, moved;
  int scalars_per_micro_batch = 2;  ///< a loss and a metric
  int scalars_per_rank = 8;
};

/// Each figure is the largest among the host's ranks. Seconds are CPU time of the rank's own thread.
struct ReduceScale {
  std::uint64_t messages = 0;         ///< with gradients, to other hosts, in the first step
  std::uint64_t scalar_messages = 0;  ///< the same, with the step's scalars
  std::uint64_t network_bytes = 0;    ///< of both
  std::uint64_t shared_memory_bytes = 0;
  double plan_seconds = 0;       ///< to place all micro-batches anew and begin the step with them
  double begin_seconds = 0;      ///< to begin a step whose micro-batches have not moved
  double advance_seconds = 0;    ///< for one pass over everything that is awaited, if nothing new has arrived
  std::uint64_t heap_bytes = 0;  ///< of all ranks of the host, divided by their number; 0: unknown
};

/// Measures on the host of the rank that owns most. Throws Error(internal) if a sum is wrong.
[[nodiscard]] ReduceScale measure_reduce_scale(const ScaleLoad& load);

}  // namespace lockstep::bench
