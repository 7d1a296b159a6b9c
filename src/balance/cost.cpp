#include "balance/cost.hpp"

#include <algorithm>
#include <bit>

#include "core/round_up.hpp"

namespace lockstep::balance {

int rounds(int shards, int workers) {
  return divide_up(shards, workers);
}

double rank_seconds(const RankCost& rank, int shards, double reduce) {
  return rank.fixed_seconds + rounds(shards, rank.workers) * rank.seconds_per_shard +
         (std::popcount(static_cast<unsigned>(shards)) + 1) * reduce;
}

double step_seconds(std::span<const RankCost> ranks, std::span<const int> counts, double reduce) {
  double slowest = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    slowest = std::max(slowest, rank_seconds(ranks[r], counts[r], reduce));
  }
  return slowest;
}

int max_shards(const MemoryLimit& limit, int shards) {
  int most = 1;
  for (int n = 2; n <= shards; ++n) {
    const std::int64_t sums = std::bit_width(static_cast<unsigned>(n));
    const bool shared_fits = sums * limit.gradient_bytes <= limit.shared_memory;
    const bool all_fits = (2 * sums + limit.workers) * limit.gradient_bytes <= limit.memory;
    if (shared_fits && all_fits) most = n;
  }
  return most;
}

}  // namespace lockstep::balance
