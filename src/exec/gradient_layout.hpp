// Where each slot (a gradient or a statistic of one shard) lies: buckets of contiguous floats, in order of
// completion, so that a bucket can leave while backward still runs.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/reduce/slices.hpp"
#include "graph/program.hpp"

namespace lockstep::exec {

/// Slices of a bucket are cut at multiples of this many elements within one tensor.
inline constexpr std::int64_t kChunk = 4096;

struct Bucket {
  std::int32_t first_slot = 0, last_slot = 0;  ///< [first, last)
  std::int64_t elements = 0;                   ///< padded: slots start at multiples of 16 floats
  std::vector<std::int64_t> cuts;              ///< chunk starts, ascending, the first is 0
};

struct SlotPlace {
  std::int32_t bucket = 0;
  std::int64_t offset = 0;  ///< in elements
};

struct GradientLayout {
  std::vector<Bucket> buckets;
  std::vector<SlotPlace> slots;
};

/// A bucket is closed when it has reached `bucket_bytes`; a slot is never split.
[[nodiscard]] GradientLayout make_gradient_layout(const Program& program, std::int64_t bucket_bytes);

/// The same buckets, as a reducer of `shards` shards wants them described.
[[nodiscard]] comm::BucketLayout bucket_layout(const GradientLayout& layout, std::int64_t shards);

}  // namespace lockstep::exec
