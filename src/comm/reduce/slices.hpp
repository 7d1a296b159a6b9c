// How buckets are cut: each into one slice a rank, on chunk boundaries. The cuts depend on the number of ranks;
// no bit does, for the owner of a slice only decides who adds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::comm {

inline constexpr std::int64_t kChunkElements = 4096;

struct BucketLayout {
  std::vector<std::int64_t> bucket_elements;
  /// By bucket: elements where a slice may begin, ascending. 0 and the end are always allowed.
  std::vector<std::vector<std::int64_t>> cuts;
  int shards = 1;
  /// Where a bucket has fewer slices than there are ranks, the next bucket's belong to the next ranks, so that over all
  /// buckets every rank owns about as much. Not on GPUs, whose all-gather wants slices in the order of ranks.
  bool spread_owners = false;
};

/// Where chunks begin in a bucket of these tensors: each tensor's start and every 4,096 elements within it.
[[nodiscard]] std::vector<std::int64_t> chunk_cuts(std::span<const std::int64_t> tensor_elements);

/// `ranks` + 1 ascending offsets: rank r owns [slices[r], slices[r + 1]) of the bucket. As equal as the cuts allow.
[[nodiscard]] std::vector<std::int64_t> slice_bounds(std::int64_t elements, std::span<const std::int64_t> cuts,
                                                     int ranks);

/// A part of a bucket, and the rank that adds it up.
struct Slice {
  int owner = 0;
  std::int64_t first = 0, size = 0;  ///< in elements
};

/// The slices of slice_bounds() that are not empty, in order: as many as there are chunks, however many ranks.
[[nodiscard]] std::vector<Slice> slices_of(const BucketLayout& layout, int bucket, int ranks);

}  // namespace lockstep::comm
