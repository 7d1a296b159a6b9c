// Which rank computes which micro-batches. This changes the speed and the bytes sent, never the bits of the result.
//
// Micro-batches are placed by buddy allocation: a rank with n micro-batches gets at most popcount(n) whole subtrees of
// the reduction tree, so it sends the fewest partial sums. If hosts have several ranks, hosts get whole subtrees first,
// and their ranks then parts of these, so that a host with n micro-batches has popcount(n) sums to send
// (comm/reduce/reduce_plan.hpp). Each rank's list begins with its largest subtree, because that one takes longest to
// finish.
#pragma once

#include <span>
#include <vector>

namespace lockstep::comm {

struct MicroBatchAssignment {
  std::vector<std::vector<int>> micro_batches_of_rank;  ///< each micro-batch once, in the order of computation
  /// All micro-batches in the order in which their gradients are computed, as a schedule has it
  /// (step/balance/pipeline.hpp); empty: the ranks go through their lists at even pace.
  std::vector<int> order = {};
  /// By micro-batch: its wave, if gradients or parameters are exchanged in waves (see below); empty: they are not.
  std::vector<int> waves = {};
  bool operator==(const MicroBatchAssignment&) const = default;
};

/// Places counts[r] micro-batches on rank r; the counts must add up to the number of micro-batches. Micro-batches stay
/// where they were `before` (of the same micro-batches and ranks; empty: nowhere) as long as that does not add partial
/// sums. `host_of`: each rank's host (Topology); empty: all on one. O((V + R) log V) for V micro-batches on R ranks,
/// besides sorting.
[[nodiscard]] MicroBatchAssignment place_micro_batches(std::span<const int> counts,
                                                       const MicroBatchAssignment& before = {},
                                                       std::span<const int> host_of = {});

/// Keeps each host's micro-batches and each rank's count, but deals the micro-batches to the host's ranks in turn:
/// neighbours in the tree are then computed at about the same time, so that few sums wait for their sibling.
[[nodiscard]] MicroBatchAssignment interleave_micro_batches(const MicroBatchAssignment& placed,
                                                            std::span<const int> host_of);

/// The micro-batches of some ranks, in the order in which their gradients are expected: as the schedule has it, or, if
/// all go through their lists at even pace, as they come then; the tree's order decides between simultaneous ones.
[[nodiscard]] std::vector<int> expected_order(const MicroBatchAssignment& assignment, std::span<const int> ranks);

// Waves: GPUs exchange what they divide in an order that is the same on all ranks, though these have unequally many
// micro-batches and workers. In a wave each worker of a rank computes at most one micro-batch. All ranks make the same
// waves, as many as the rank that needs most; one with fewer goes through them at even pace, so that it may be slower.
// It takes part in the exchanges of the others, too.

/// How many waves there are.
[[nodiscard]] int count_waves(std::span<const int> micro_batches_of_ranks, std::span<const int> workers_of_ranks);
/// Of so many, the wave of micro-batch number `index` of a rank's list.
[[nodiscard]] int wave_at(int index, int micro_batches, int workers, int waves);
/// By micro-batch.
[[nodiscard]] std::vector<int> even_waves(const MicroBatchAssignment& assignment,
                                          std::span<const int> workers_of_ranks);

/// How many micro-batches have changed their rank.
[[nodiscard]] int micro_batches_moved(const MicroBatchAssignment& before, const MicroBatchAssignment& after);

/// V micro-batches over R ranks, as equal as possible; the lower ranks get the remainder.
[[nodiscard]] std::vector<int> equal_counts(int micro_batches, int ranks);

/// Counts that minimise the slowest rank's counts[r] / weights[r]; ties go to the lower rank. A rank with weight 0 gets
/// none. O((V + R) log R).
[[nodiscard]] std::vector<int> counts_by_weights(int micro_batches, std::span<const double> weights);

}  // namespace lockstep::comm
