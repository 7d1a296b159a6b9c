// GradientBuckets: where the gradient lies and how it is cut. Slots (the gradients and statistics of a program, in the
// order in which they are done) lie one behind the other in buckets of contiguous floats, so that a bucket can leave
// while earlier layers still compute. For the reduce-scatter each bucket is cut into one slice a rank, on chunk
// boundaries. The cuts depend on the number of ranks; no bit does, for the owner of a slice only decides who adds.
//
// Where the ranks divide the model's state among them (sharding), a bucket's sum stays with the owners of its slices,
// and they alone update the parameters that it is the gradient of.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::comm {

/// The chunk: what is cut by elements (buckets, the work of an update, files of a checkpoint) is cut at multiples of
/// so many of them within a tensor.
inline constexpr std::int64_t kChunkElements = 4096;

struct GradientBuckets {
  struct Bucket {
    std::int64_t elements = 0;            ///< with the gaps between slots, which start at multiples of 16 floats
    std::vector<std::int64_t> cuts = {};  ///< where a slice may begin, ascending; 0 and the end are always allowed
    std::int32_t first_slot = 0, last_slot = 0;  ///< [first, last)
    bool scattered = false;  ///< each slice of the sum is only on its owner after the reduction: there is no all-gather
    std::int32_t turn = -1;  ///< by how many ranks owners are moved on where they are spread; -1: its number

    /// A tensor goes behind what is there. A slice may begin with it, and with each chunk of it.
    void append(std::int64_t tensor_elements);
  };
  struct Slot {
    std::int32_t bucket = 0;
    std::int64_t offset = 0;  ///< in elements
  };

  std::vector<Bucket> buckets;
  int shards = 1;
  /// Where a bucket has fewer slices than there are ranks, the next bucket's belong to the next ranks, so that over all
  /// buckets every rank owns about as much. Not on GPUs, whose all-gather wants slices in the order of ranks.
  bool spread_owners = false;
  std::vector<Slot> slots = {};

  /// What of_slots() has to know of a slot.
  struct SlotShape {
    std::int64_t elements = 0;
    bool scattered = false;  ///< as the bucket's
    int alike = -1;          ///< not negative: it has a bucket of its own, whose slices all slots of this number have
  };
  /// A bucket is closed when it has reached `bucket_bytes`, and where `scattered` changes; a slot is never split.
  [[nodiscard]] static GradientBuckets of_slots(std::span<const SlotShape> shapes, std::int64_t bucket_bytes,
                                                int shards);

  [[nodiscard]] int count() const { return static_cast<int>(buckets.size()); }
  [[nodiscard]] const Bucket& at(int bucket) const { return buckets[static_cast<std::size_t>(bucket)]; }
  /// Of all buckets.
  [[nodiscard]] std::int64_t elements() const;
  /// Of the largest one.
  [[nodiscard]] std::int64_t max_elements() const;
};

/// A bucket of these tensors, without gaps.
[[nodiscard]] GradientBuckets::Bucket bucket_of(std::span<const std::int64_t> tensor_elements);

/// `ranks` + 1 ascending offsets: rank r owns [bounds[r], bounds[r + 1]) of the bucket. As equal as the cuts allow.
[[nodiscard]] std::vector<std::int64_t> slice_bounds(const GradientBuckets::Bucket& bucket, int ranks);

/// A part of a bucket, and the rank that adds it up.
struct Slice {
  int owner = 0;
  std::int64_t first = 0, size = 0;  ///< in elements
};

/// The slices of slice_bounds() that are not empty, in order: as many as there are chunks, however many ranks.
[[nodiscard]] std::vector<Slice> slices_of(const GradientBuckets& buckets, int bucket, int ranks);

}  // namespace lockstep::comm
