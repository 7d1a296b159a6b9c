// The integer split: how many shards each rank gets.
#pragma once

#include <span>
#include <vector>

#include "balance/cost.hpp"

namespace lockstep::balance {

/// Counts that add up to `shards`, none above its rank's max_shards, with the smallest possible step_seconds. Among
/// those within `slack` (a fraction) of it, the ones nearest to `near` (empty: any), so that few shards move. The sum
/// of all max_shards must be at least `shards`. Exact while ranks * shards is at most 4 million; beyond that greedy
/// (see balance/large_split.hpp for what is still guaranteed).
[[nodiscard]] std::vector<int> best_split(std::span<const RankCost> ranks, int shards, double reduce,
                                          std::span<const int> near = {}, double slack = 0);

/// The same for work without an all-reduce, in O(shards * log ranks), which is fast for many shards, too. Ties go to
/// the lower rank.
[[nodiscard]] std::vector<int> best_split_without_reduce(std::span<const RankCost> ranks, int shards);

/// A lower bound on the step time of any split, which is usually reached. O((shards + ranks) log ranks) without a
/// table, so it is also cheap for large clusters.
[[nodiscard]] double fastest_step(std::span<const RankCost> ranks, int shards, double reduce);

}  // namespace lockstep::balance
