// Splits for clusters where the exact search of split.hpp would take too long: greedy, in O(V log R) for V shards on R
// ranks and each of some 20 limits, and O(V + R) memory.
#pragma once

#include <span>
#include <vector>

#include "balance/cost.hpp"

namespace lockstep::balance {

/// Shard after shard to the rank that is done with it first: a good split, if not the best. O(shards * log ranks).
[[nodiscard]] std::vector<int> greedy_counts(std::span<const RankCost> ranks, int shards, double reduce);

/// The most shards, of `shards`, with which the rank is done by `limit` seconds; -1: it never is. O(log shards).
[[nodiscard]] int max_within(const RankCost& rank, int shards, double reduce, double limit);

/// As best_split, without its promise of the best: each rank takes the count nearest to `near` (empty: greedy_counts)
/// of those with which it is done by a limit. Then ranks step to their next such count, those first that add least to
/// the distance from `near` for each shard, then the larger step, then the lower rank, and not beyond the sum that is
/// wanted; where all steps left are too large, the smallest is taken and others step back, a few times. The limit is
/// bisected (to a millionth) down to the smallest with which the sum is reached.
///
/// Guaranteed: counts that add up to `shards`, none above max_shards, and a step not slower than that of
/// greedy_counts by more than the slack. Not guaranteed: the smallest step, and the smallest distance. Whether the sum
/// is reached may depend on the order of the steps; where it is not, a larger limit is taken.
[[nodiscard]] std::vector<int> large_split(std::span<const RankCost> ranks, int shards, double reduce,
                                           std::span<const int> near, double slack);

}  // namespace lockstep::balance
