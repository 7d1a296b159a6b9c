// Which rank computes which shards. This changes the speed and the bytes sent, never the bits of the result.
//
// Shards are placed by buddy allocation: a rank with n shards gets at most popcount(n) whole subtrees of the reduction
// tree, so it sends the fewest partial sums. If hosts have several ranks, hosts get whole subtrees first, and their
// ranks then parts of these, so that a host with n shards has popcount(n) sums to send (comm/reduce/reduce_plan.hpp).
// Each rank's list begins with its largest subtree, because that one takes longest to finish.
#pragma once

#include <span>
#include <vector>

namespace lockstep::comm {

struct ShardAssignment {
  std::vector<std::vector<int>> shards_of_rank;  ///< each shard once, in the order of computation
  bool operator==(const ShardAssignment&) const = default;
};

/// Places counts[r] shards on rank r; the counts must add up to the number of shards. Shards stay where they were
/// `before` (of the same shards and ranks; empty: nowhere) as long as that does not add partial sums. `host_of`: each
/// rank's host (Topology); empty: all on one. O((V + R) log V) for V shards on R ranks, besides sorting.
[[nodiscard]] ShardAssignment place_shards(std::span<const int> counts, const ShardAssignment& before = {},
                                           std::span<const int> host_of = {});

/// Keeps each host's shards and each rank's count, but deals the shards to the host's ranks in turn: neighbours in the
/// tree are then computed at about the same time, so that few sums wait for their sibling.
[[nodiscard]] ShardAssignment interleave_shards(const ShardAssignment& placed, std::span<const int> host_of);

/// How many shards have changed their rank.
[[nodiscard]] int shards_moved(const ShardAssignment& before, const ShardAssignment& after);

/// V shards over R ranks, as equal as possible; the lower ranks get the remainder.
[[nodiscard]] std::vector<int> equal_counts(int shards, int ranks);

/// Counts that minimise the slowest rank's counts[r] / weights[r]; ties go to the lower rank. A rank with weight 0 gets
/// none. O((V + R) log R).
[[nodiscard]] std::vector<int> counts_by_weights(int shards, std::span<const double> weights);

}  // namespace lockstep::comm
