// Choosing the number of micro-batches: plain arithmetic on the batch size.
#pragma once

#include <cstdint>
#include <vector>

#include "config/config.hpp"

namespace lockstep::config {

/// How small a micro-batch may be by default.
enum class MicroBatchWork : std::uint8_t {
  sequences,  ///< 1 sample: it is a window of tokens, and each token is a row of the model's matrix products
  samples,    ///< 8 samples: fewer are too little work for a kernel (docs/performance.md), unless the batch is small
  batch_statistics,  ///< 16 samples: batch norm over fewer costs accuracy
};
[[nodiscard]] MicroBatchWork micro_batch_work(const Job& job, const Catalogue& catalogue);

/// The largest divisor of `batch` up to 32 that leaves each micro-batch as many samples as `work` asks for, or 1 if
/// there is none. If that is less than 4 and `work` is `samples`: the largest divisor up to 4, since some parallelism
/// is worth more.
[[nodiscard]] std::int64_t default_micro_batches(std::int64_t batch, MicroBatchWork work);

/// The largest divisor of `batch` up to `wanted`, and the smallest above it, if there is one up to 64 times `wanted`.
[[nodiscard]] std::vector<std::int64_t> near_divisors(std::int64_t batch, std::int64_t wanted);

[[nodiscard]] bool uses_batch_statistics(const ModelOptions& model, const Catalogue& catalogue);

}  // namespace lockstep::config
