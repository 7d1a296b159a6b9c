// Splits for clusters in which the exact search of split.hpp would take too long: greedy, in O(V log R) for V
// micro-batches on R ranks and each of some 20 limits, and O(V + R) memory.
#pragma once

#include <span>
#include <vector>

#include "step/balance/cost.hpp"

namespace lockstep::balance {

/// Gives micro-batch after micro-batch to the rank that would finish it first: a good split, but not always the best.
/// O(micro-batches * log ranks).
[[nodiscard]] std::vector<int> greedy_counts(std::span<const RankCost> ranks, int micro_batches, double reduce);

/// The most micro-batches, up to `micro_batches`, with which the rank finishes within `limit` seconds; -1: not even
/// with none. O(log micro-batches).
[[nodiscard]] int max_within(const RankCost& rank, int micro_batches, double reduce, double limit);

/// Like best_split, but not necessarily optimal. Each rank starts with the count nearest to `near` (empty:
/// greedy_counts) of those with which it finishes within a limit. Then ranks step to their next such count, first those
/// that add the least distance from `near` per micro-batch, then the larger step, then the lower rank, without passing
/// the wanted sum; if all remaining steps are too large, the smallest is taken and others step back, a few times. The
/// limit is bisected (to a millionth) down to the smallest with which the sum is reached.
///
/// Guaranteed: counts that add up to `micro_batches`, none above max_micro_batches, and a step that is at most the
/// slack slower than that of greedy_counts. Not guaranteed: the shortest step and the smallest distance. Whether the
/// sum is reached may depend on the order of the steps; if it is not, a larger limit is used.
[[nodiscard]] std::vector<int> large_split(std::span<const RankCost> ranks, int micro_batches, double reduce,
                                           std::span<const int> near, double slack);

}  // namespace lockstep::balance
