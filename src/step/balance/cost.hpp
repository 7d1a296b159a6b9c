// What a step costs, in the model by which shares are chosen. All times are in seconds.
//
//   rank r with n micro-batches:   fixed_r + ceil(n / workers_r) * seconds_per_micro_batch_r + (popcount(n) + 1) *
//   reduce the step:               the slowest rank's
//
// A micro-batch is computed entirely by one worker, so n micro-batches take ceil(n / workers) rounds. With n
// micro-batches, a rank sends popcount(n) partial sums and its own reduced slice, each (R - 1) / R of the gradient:
// `reduce` is the exposed time of one of them (the part that compute does not hide).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::balance {

struct RankCost {
  double seconds_per_micro_batch = 0;  ///< on one worker, while the others also compute
  double fixed_seconds = 0;            ///< time of a step that does not depend on the share: the update
  int workers = 1;
  int max_micro_batches = 0;  ///< limited by its memory
};

/// The number of rounds for n micro-batches on w workers.
[[nodiscard]] int rounds(int micro_batches, int workers);

[[nodiscard]] double rank_seconds(const RankCost& rank, int micro_batches, double reduce);

/// The step time of the slowest rank.
[[nodiscard]] double step_seconds(std::span<const RankCost> ranks, std::span<const int> counts, double reduce);

/// What limits the micro-batches of a rank.
struct MemoryForGradients {
  std::int64_t memory = 0;          ///< bytes this rank may still allocate
  std::int64_t gradient_bytes = 0;  ///< of all buckets whose partial sums it holds
  int workers = 1;                  ///< micro-batches computed at a time
};

/// With n micro-batches a rank holds at most bit_width(n) partial sums in memory shared with its host, as many sums
/// that wait for their sibling, and one gradient per worker. Returns the largest n up to `micro_batches` for which that
/// fits, but at least 1.
[[nodiscard]] int max_micro_batches(const MemoryForGradients& limit, int micro_batches);

/// What limits the micro-batches of every rank, as each has room for the most partial sums of any.
struct SharedMemoryLimit {
  std::int64_t bytes = 0;           ///< of /dev/shm on this host, where only the partial sums of this assignment are
  std::int64_t gradient_bytes = 0;  ///< as in MemoryForGradients
  int ranks = 1;                    ///< of this host
};

/// The same for the partial sums of a host's ranks and one whole sum.
[[nodiscard]] int max_micro_batches(const SharedMemoryLimit& limit, int micro_batches);

}  // namespace lockstep::balance
