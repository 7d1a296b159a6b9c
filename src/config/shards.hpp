// Choosing shards: plain arithmetic on the batch.
#pragma once

#include <cstdint>
#include <vector>

#include "config/config.hpp"

namespace lockstep::config {

/// How small a shard may be by default.
enum class ShardWork : std::uint8_t {
  sequences,  ///< 1 sample: it is a window of tokens, and each is a row of the model's products
  samples,    ///< 8 samples: fewer are too little work for a kernel (docs/performance.md), unless the batch is small
  batch_statistics,  ///< 16 samples: batch norm over fewer costs accuracy
};
[[nodiscard]] ShardWork shard_work(const Job& job, const Catalogue& catalogue);

/// The largest divisor of `batch` up to 32 that leaves each shard the samples that `work` says, or 1 where none does.
/// Where that is fewer than 4 for `samples`, the largest divisor up to 4: some parallelism is worth more.
[[nodiscard]] std::int64_t default_shards(std::int64_t batch, ShardWork work);

/// The divisors of `batch` next below and next above `wanted`.
[[nodiscard]] std::vector<std::int64_t> near_divisors(std::int64_t batch, std::int64_t wanted);

[[nodiscard]] bool uses_batch_statistics(const ModelOptions& model, const Catalogue& catalogue);

}  // namespace lockstep::config
