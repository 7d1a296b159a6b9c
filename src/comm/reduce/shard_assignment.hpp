// Which rank computes which shards. It changes the speed and the bytes sent, never the bits.
//
// Shards are placed by buddy allocation: a rank with n shards gets at most popcount(n) whole subtrees of the
// reduction tree, so it sends the fewest partial sums. Where hosts have several ranks, hosts are given whole subtrees
// first, and their ranks then parts of these, so that a host with n shards has popcount(n) sums to send
// (comm/reduce/reduce_plan.hpp). Each rank's list has its largest subtree first, because that one takes longest to
// finish.
#pragma once

#include <span>
#include <vector>

namespace lockstep::comm {

struct ShardAssignment {
  std::vector<std::vector<int>> shards_of_rank;  ///< each shard once; in the order to compute them
  bool operator==(const ShardAssignment&) const = default;
};

/// Places counts[r] shards on rank r; the counts add up to the number of shards. Shards stay where they were `before`
/// (of the same shards and ranks; empty: nowhere) as far as that sends no more partial sums. `host_of`: each rank's
/// host (Topology); empty: of one. O((V + R) log V) for V shards on R ranks, besides sorting.
[[nodiscard]] ShardAssignment place_shards(std::span<const int> counts, const ShardAssignment& before = {},
                                           std::span<const int> host_of = {});

/// The same shards on each host, and as many on each rank, but dealt to the host's ranks in turn: neighbours in the
/// tree are then computed at about the same time, so that few sums wait for their sibling.
[[nodiscard]] ShardAssignment interleave_shards(const ShardAssignment& placed, std::span<const int> host_of);

/// How many shards are on another rank than before.
[[nodiscard]] int shards_moved(const ShardAssignment& before, const ShardAssignment& after);

/// V shards over R ranks, as equal as they can be; the lower ranks get the rest.
[[nodiscard]] std::vector<int> equal_counts(int shards, int ranks);

/// Counts that minimise the slowest rank's counts[r] / weights[r]; ties go to the lower rank. A rank of weight
/// 0 gets none. O((V + R) log R).
[[nodiscard]] std::vector<int> counts_by_weights(int shards, std::span<const double> weights);

}  // namespace lockstep::comm
