// What reducing gradients costs a rank of a large cluster, looked at on one machine: the ranks of one host are real
// (bench/sampled_host.hpp), all others are simulated.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/reduce_times.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::bench {

/// A step with shards by rank `counts`, then one with `moved`, as after a decision of the balancer.
struct ScaleLoad {
  ReduceLoad reduce;
  Topology topology;
  std::vector<int> counts, moved;
  int scalars_per_shard = 2;  ///< a loss and a metric
  int scalars_per_rank = 8;
};

/// Of the rank of the host that has most of it. Seconds are the processor's, of that rank's own thread.
struct ReduceScale {
  std::uint64_t messages = 0;         ///< with gradients, to other hosts, in the first step
  std::uint64_t scalar_messages = 0;  ///< the same, with the step's scalars
  std::uint64_t network_bytes = 0;    ///< of both
  std::uint64_t shared_memory_bytes = 0;
  double plan_seconds = 0;       ///< places all shards anew and begins the step with them
  double begin_seconds = 0;      ///< begins a step whose shards are where they were
  double advance_seconds = 0;    ///< one pass over all that is awaited, when nothing new has come
  std::uint64_t heap_bytes = 0;  ///< of the ranks of the host together, over their number; 0: not known
};

/// On the host of the rank that owns most. Throws Error(internal) where a sum is wrong.
[[nodiscard]] ReduceScale measure_reduce_scale(const ScaleLoad& load);

}  // namespace lockstep::bench
