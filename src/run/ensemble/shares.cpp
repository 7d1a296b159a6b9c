#include "run/ensemble/shares.hpp"

namespace lockstep::ensemble {

std::vector<std::vector<Share>> shares_of_ranks(std::int64_t samples,
                                                const std::vector<std::int64_t>& micro_batch_samples, int ranks) {
  std::vector<std::vector<Share>> shares(ranks);
  const std::int64_t all = samples * static_cast<std::int64_t>(micro_batch_samples.size());
  for (std::size_t m = 0; m < micro_batch_samples.size(); ++m) {
    const std::int64_t before = samples * static_cast<std::int64_t>(m);
    for (std::int64_t first = 0, micro_batch = 0; first < samples; first += micro_batch_samples[m], ++micro_batch) {
      auto& of_rank = shares[(before + first) * ranks / all];
      if (of_rank.empty() || of_rank.back().member != m) of_rank.push_back({m, {}});
      of_rank.back().micro_batches.push_back(micro_batch);
    }
  }
  return shares;
}

}  // namespace lockstep::ensemble
