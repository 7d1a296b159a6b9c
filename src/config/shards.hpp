// Choosing shards: plain arithmetic on the batch.
#pragma once

#include <cstdint>
#include <vector>

#include "config/config.hpp"

namespace lockstep::config {

/// The largest divisor of `batch` up to 32; with batch statistics such that a shard has 16 samples or more
/// (fewer cost accuracy: DESIGN.md has the measurement), or 1 where none has.
[[nodiscard]] std::int64_t default_shards(std::int64_t batch, bool batch_statistics);

/// The divisors of `batch` next below and next above `wanted`.
[[nodiscard]] std::vector<std::int64_t> near_divisors(std::int64_t batch, std::int64_t wanted);

[[nodiscard]] bool uses_batch_statistics(const ModelOptions& model, const Catalogue& catalogue);

}  // namespace lockstep::config
