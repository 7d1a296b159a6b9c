// How much each rank of an exact all-reduce holds, adds and sends: the figures of all ranks' reduce plans
// (comm/reduce/reduce_plan.hpp), computed together. A plan of thousands of ranks needs no slice by itself, and making
// every rank's reduce plan would take time and memory in proportion to the square of the ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/reduce/gradient_buckets.hpp"
#include "comm/reduce/micro_batch_assignment.hpp"
#include "comm/reduce/reduce_plan.hpp"
#include "comm/transport/topology.hpp"

namespace lockstep::comm {

/// The sums of a rank, for each slice.
struct SumLoad {
  std::vector<int> roots = {};  ///< micro-batches of each of its partial sums
  int read = 0;                 ///< partial sums of other ranks of its host
  int host_sums = 0;            ///< sums of its host, which it sends to owners on other hosts
  int made_sums = 0;            ///< those of them that are not one of its own partial sums
  int others = 0;               ///< sums of other hosts
  int additions() const { return static_cast<int>(roots.size()) + read + others - 1; }
};
/// By rank.
[[nodiscard]] std::vector<SumLoad> sum_loads(int micro_batches, const MicroBatchAssignment& assignment,
                                             const Hosts& hosts);

/// Elements of a rank's slices.
struct SliceLoad {
  struct Elements {
    std::int64_t all = 0;                         ///< of all ranks
    std::int64_t own = 0;                         ///< it owns
    std::int64_t led = 0;                         ///< it leads for owners on other hosts
    std::int64_t own_floats = 0, led_floats = 0;  ///< the same in memory: each slice in whole lines
  };
  Elements gathered, scattered;  ///< in buckets that are finished on all ranks; in those that stay with their owners
  std::int64_t own() const { return gathered.own + scattered.own; }
  std::int64_t own_floats() const { return gathered.own_floats + scattered.own_floats; }
};
/// By rank.
[[nodiscard]] std::vector<SliceLoad> slice_loads(const GradientBuckets& buckets, const Hosts& hosts);

/// bytes_of() of the rank's plan for one step.
[[nodiscard]] PlannedBytes planned_bytes_of(const SumLoad& sums, const SliceLoad& slices, const Hosts& hosts, int rank,
                                            bool streamed);
/// Bytes that the rank sends when every rank gets all scattered slices from their owners, of values that replace them:
/// updated parameters. `shared`: ranks of a host read the same memory. It is as much as what finished slices are sent
/// with in buckets that are gathered.
[[nodiscard]] PlannedBytes gathered_bytes_of(const SliceLoad& slices, const Hosts& hosts, int rank, bool shared);

}  // namespace lockstep::comm
