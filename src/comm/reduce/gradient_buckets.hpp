// GradientBuckets: how the gradient is laid out and cut. Slots (the gradients and statistics of a program, in the order
// in which they are computed) follow one another in buckets of contiguous floats, so that a bucket can be sent while
// earlier layers are still being computed. For the reduce-scatter, each bucket is cut into one slice per rank, on chunk
// boundaries. The cuts depend on the number of ranks; no bit does, since the owner of a slice only decides who adds.
//
// If the ranks divide the model's state among them (sharding), a bucket's sum stays with the owners of its slices, and
// only they update the corresponding parameters.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::comm {

/// The chunk size: whatever is cut by elements (buckets, the work of an update, files of a checkpoint) is cut at
/// multiples of this many elements within a tensor.
inline constexpr std::int64_t kChunkElements = 4096;

struct GradientBuckets {
  struct Bucket {
    std::int64_t elements = 0;            ///< including the gaps between slots, which start at multiples of 16 floats
    std::vector<std::int64_t> cuts = {};  ///< where a slice may begin, ascending; 0 and the end are always allowed
    std::int32_t first_slot = 0, last_slot = 0;  ///< [first, last)
    bool scattered = false;  ///< there is no all-gather: after the reduction, only a slice's owner has its sum
    std::int32_t turn = -1;  ///< with spread_owners: by how many ranks the owners are shifted; -1: by the bucket's
                             ///< number

    bool operator==(const Bucket&) const = default;
    /// Appends a tensor. A slice may begin at each of its chunks; if it is `uncut`, only at its first element.
    void append(std::int64_t tensor_elements, bool uncut = false);
  };
  struct Slot {
    std::int32_t bucket = 0;
    std::int64_t offset = 0;  ///< in elements
    bool operator==(const Slot&) const = default;
  };

  std::vector<Bucket> buckets;
  int micro_batches = 1;
  /// If a bucket has fewer slices than there are ranks, the next bucket's slices go to the next ranks, so that every
  /// rank owns about the same amount in total. Not on GPUs, whose all-gather needs slices in rank order; scattered
  /// buckets, which are not gathered, always do so.
  bool spread_owners = false;
  std::vector<Slot> slots = {};
  bool operator==(const GradientBuckets&) const = default;

  /// What of_slots() needs to know about a slot.
  struct SlotShape {
    std::int64_t elements = 0;
    bool scattered = false;  ///< see Bucket
    int alike = -1;          ///< if not negative: it has a bucket of its own, and all slots with this number have the
                             ///< same slices and owners
    bool uncut = false;      ///< it has one owner
  };
  /// A bucket is closed when it reaches `bucket_bytes`, and where `scattered` changes; a slot is never split.
  [[nodiscard]] static GradientBuckets of_slots(std::span<const SlotShape> shapes, std::int64_t bucket_bytes,
                                                int micro_batches);

  /// Puts gaps between the slots of buckets that are gathered, so that all ranks have slices of the same size, and a
  /// library's all-gather takes one call. Where gaps would take more than a quarter of a bucket, and more than 1 MiB,
  /// it stays as it is. `shapes`: as for of_slots().
  void make_slices_equal(std::span<const SlotShape> shapes, int ranks);

  int count() const { return buckets.size(); }
  const Bucket& at(int bucket) const { return buckets[bucket]; }
  /// In all buckets together.
  std::int64_t elements() const;
  /// In the largest bucket.
  std::int64_t max_elements() const;
};

/// A bucket with these tensors, without gaps.
[[nodiscard]] GradientBuckets::Bucket bucket_of(std::span<const std::int64_t> tensor_elements);

/// `ranks` + 1 ascending offsets: rank r owns [bounds[r], bounds[r + 1]) of the bucket. As equal as the cuts allow.
[[nodiscard]] std::vector<std::int64_t> slice_bounds(const GradientBuckets::Bucket& bucket, int ranks);

/// A slice of a bucket, and the rank that adds it up.
struct Slice {
  int owner = 0;
  std::int64_t first = 0, size = 0;  ///< in elements
};

/// The non-empty slices of slice_bounds(), in order; at most as many as there are chunks, however many ranks.
[[nodiscard]] std::vector<Slice> slices_of(const GradientBuckets& buckets, int bucket, int ranks);

}  // namespace lockstep::comm
