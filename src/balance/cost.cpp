#include "balance/cost.hpp"

#include <algorithm>
#include <bit>

namespace lockstep::balance {

int rounds(int shards, int workers) {
  return (shards + workers - 1) / workers;
}

double rank_seconds(const RankCost& rank, int shards, double exchange) {
  return rank.fixed_seconds + rounds(shards, rank.workers) * rank.seconds_per_shard +
         (std::popcount(static_cast<unsigned>(shards)) + 1) * exchange;
}

double step_seconds(std::span<const RankCost> ranks, std::span<const int> counts, double exchange) {
  double slowest = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    slowest = std::max(slowest, rank_seconds(ranks[r], counts[r], exchange));
  }
  return slowest;
}

}  // namespace lockstep::balance
