#include "step/balance/cost.hpp"

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

namespace {

// `fits`: of a number of partial sums, which does not decrease with n.
template <class Fits>
int most_that_fit(int micro_batches, const Fits& fits) {
  int most = 1;
  while (most < micro_batches && fits(std::bit_width(static_cast<unsigned>(most + 1)))) ++most;
  return most;
}

}  // namespace

int max_micro_batches(const MemoryForGradients& limit, int micro_batches) {
  return most_that_fit(micro_batches, [&](std::int64_t sums) {
    return (2 * sums + limit.workers) * limit.gradient_bytes <= limit.memory;
  });
}

int max_micro_batches(const SharedMemoryLimit& limit, int micro_batches) {
  return most_that_fit(
      micro_batches, [&](std::int64_t sums) { return (limit.ranks * sums + 1) * limit.gradient_bytes <= limit.bytes; });
}

}  // namespace lockstep::balance
