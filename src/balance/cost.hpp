// What a step costs, by the model that shares are chosen with. Seconds throughout.
//
//   rank r with n shards:   fixed_r + ceil(n / workers_r) * seconds_per_shard_r + (popcount(n) + 1) * reduce
//   the step:               the slowest rank's
//
// A shard is computed whole by one worker, so n shards take ceil(n / workers) rounds. With n shards a rank sends
// popcount(n) partial sums and its own reduced slice, each (R - 1) / R of the gradient: `reduce` is the exposed time
// of one of them (of what is not hidden behind compute).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::balance {

struct RankCost {
  double seconds_per_shard = 0;  ///< of one worker, while the others compute, too
  double fixed_seconds = 0;      ///< a step's work that does not depend on the share: the update
  int workers = 1;
  int max_shards = 0;  ///< that its memory can hold
};

/// How many times a worker's place is filled: n shards on w workers.
[[nodiscard]] int rounds(int shards, int workers);

[[nodiscard]] double rank_seconds(const RankCost& rank, int shards, double reduce);

/// The slowest rank's.
[[nodiscard]] double step_seconds(std::span<const RankCost> ranks, std::span<const int> counts, double reduce);

/// What bounds the shards of a rank.
struct MemoryLimit {
  std::int64_t memory = 0;          ///< bytes this rank may still allocate
  std::int64_t shared_memory = 0;   ///< of these, in /dev/shm
  std::int64_t gradient_bytes = 0;  ///< of all buckets
  int workers = 1;                  ///< shards in flight
};

/// With n shards a rank holds at most bit_width(n) partial sums in shared memory, as many sums that wait for their
/// sibling, and one gradient for each worker. The largest n up to `shards` for which that fits, at least 1.
[[nodiscard]] int max_shards(const MemoryLimit& limit, int shards);

}  // namespace lockstep::balance
