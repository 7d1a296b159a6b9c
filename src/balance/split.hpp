// The integer split: how many shards each rank gets.
#pragma once

#include <span>
#include <vector>

#include "balance/cost.hpp"

namespace lockstep::balance {

/// Counts that add up to `shards`, none above its rank's max_shards, with the smallest step_seconds there is. Among
/// those within `slack` (a fraction) of it, the ones nearest to `near` (empty: any), so that few shards move. The sum
/// of all max_shards must be at least `shards`. Exact while ranks * shards is at most 4 million; beyond that greedy
/// (balance/large_split.hpp says what is still guaranteed).
[[nodiscard]] std::vector<int> best_split(std::span<const RankCost> ranks, int shards, double reduce,
                                          std::span<const int> near = {}, double slack = 0);

/// The same for work without an all-reduce, in O(shards * log ranks): of many shards, too. Ties go to the lower rank.
[[nodiscard]] std::vector<int> best_split_without_reduce(std::span<const RankCost> ranks, int shards);

/// No split is faster than this; most often it is reached. O((shards + ranks) log ranks) and no table: cheap for large
/// clusters, too.
[[nodiscard]] double fastest_step(std::span<const RankCost> ranks, int shards, double reduce);

}  // namespace lockstep::balance
