// How many shards a rank's memory can hold.
#pragma once

#include <cstdint>

namespace lockstep::balance {

struct MemoryLimit {
  std::int64_t memory = 0;          ///< bytes this rank may still allocate
  std::int64_t shared_memory = 0;   ///< of these, in /dev/shm
  std::int64_t gradient_bytes = 0;  ///< of all buckets
  int workers = 1;                  ///< shards in flight
};

/// With n shards a rank holds at most bit_width(n) partial sums in shared memory, as many sums that wait for their
/// sibling, and one gradient for each worker. The largest n up to `shards` for which that fits, at least 1.
[[nodiscard]] int most_shards(const MemoryLimit& limit, int shards);

}  // namespace lockstep::balance
