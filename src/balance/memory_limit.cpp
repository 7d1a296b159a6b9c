#include "balance/memory_limit.hpp"

#include <bit>

namespace lockstep::balance {

int most_shards(const MemoryLimit& limit, int shards) {
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
