#include "balance/cost.hpp"

#include <algorithm>
#include <bit>

#include "core/round_up.hpp"

namespace lockstep::balance {

int rounds(int micro_batches, int workers) {
  return divide_up(micro_batches, workers);
}

double rank_seconds(const RankCost& rank, int micro_batches, double reduce) {
  return rank.fixed_seconds + rounds(micro_batches, rank.workers) * rank.seconds_per_micro_batch +
         (std::popcount(static_cast<unsigned>(micro_batches)) + 1) * reduce;
}

double step_seconds(std::span<const RankCost> ranks, std::span<const int> counts, double reduce) {
  double slowest = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    slowest = std::max(slowest, rank_seconds(ranks[r], counts[r], reduce));
  }
  return slowest;
}

int max_micro_batches(const MemoryLimit& limit, int micro_batches) {
  int most = 1;
  for (int n = 2; n <= micro_batches; ++n) {
    const std::int64_t sums = std::bit_width(static_cast<unsigned>(n));
    const bool shared_fits = sums * limit.gradient_bytes <= limit.shared_memory;
    const bool all_fits = (2 * sums + limit.workers) * limit.gradient_bytes <= limit.memory;
    if (shared_fits && all_fits) most = n;
  }
  return most;
}

}  // namespace lockstep::balance
