// The integer split: how many micro-batches each rank gets.
#pragma once

#include <span>
#include <vector>

#include "step/balance/cost.hpp"

namespace lockstep::balance {

/// Counts that add up to `micro_batches`, none above its rank's max_micro_batches, with the smallest possible
/// step_seconds. Among those within `slack` (a fraction) of it, the ones nearest to `near` (empty: any), so that few
/// micro-batches move. The sum of all max_micro_batches must be at least `micro_batches`. Exact while ranks *
/// micro-batches is at most 4 million; beyond that greedy (see step/balance/large_split.hpp for what is still
/// guaranteed).
[[nodiscard]] std::vector<int> best_split(std::span<const RankCost> ranks, int micro_batches, double reduce,
                                          std::span<const int> near = {}, double slack = 0);

/// The same for work without an all-reduce, in O(micro-batches * log ranks), which is fast for many micro-batches, too.
/// Ties go to the lower rank.
[[nodiscard]] std::vector<int> best_split_without_reduce(std::span<const RankCost> ranks, int micro_batches);

/// A lower bound on the step time of any split, which is usually reached. O((micro-batches + ranks) log ranks) without
/// a table, so it is also cheap for large clusters.
[[nodiscard]] double fastest_step(std::span<const RankCost> ranks, int micro_batches, double reduce);

}  // namespace lockstep::balance
