// Which rank computes which predictions of which member. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::ensemble {

/// Micro-batches of a member, ascending.
struct Share {
  std::size_t member = 0;
  std::vector<int> micro_batches;
};

/// By rank: members one after the other, cut into as many runs of about as many samples as there are ranks. So ranks
/// have members of their own, and share one where the numbers do not divide. `micro_batch_samples`: by member.
[[nodiscard]] std::vector<std::vector<Share>> shares_of_ranks(std::int64_t samples,
                                                              const std::vector<std::int64_t>& micro_batch_samples,
                                                              int ranks);

}  // namespace lockstep::ensemble
