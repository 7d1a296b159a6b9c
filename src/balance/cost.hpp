// What a step costs, by the model that shares are chosen with. Seconds throughout.
//
//   rank r with n shards:   fixed_r + ceil(n / workers_r) * seconds_per_shard_r + (popcount(n) + 1) * exchange
//   the step:               the slowest rank's
//
// A shard is computed whole by one worker, so n shards take ceil(n / workers) rounds. With n shards a rank sends
// popcount(n) partial sums and its own reduced slice, each (R - 1) / R of the gradient: `exchange` is the exposed time
// of one of them (of what is not hidden behind compute).
#pragma once

#include <span>
#include <vector>

namespace lockstep::balance {

struct RankCost {
  double seconds_per_shard = 0;  ///< of one worker, while the others compute, too
  double fixed_seconds = 0;      ///< a step's work that does not depend on the share: the update
  int workers = 1;
  int most_shards = 0;  ///< that its memory can hold
};

/// How many times a worker's place is filled: n shards on w workers.
[[nodiscard]] int rounds(int shards, int workers);

[[nodiscard]] double rank_seconds(const RankCost& rank, int shards, double exchange);

/// The slowest rank's.
[[nodiscard]] double step_seconds(std::span<const RankCost> ranks, std::span<const int> counts, double exchange);

}  // namespace lockstep::balance
