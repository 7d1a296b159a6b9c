// The layout of a rank's block of host memory, as the reducers use it. Peers on the same host compute the same offsets
// from the same shape.
//
//   begun | own scalars | partial flags | partial sums
//
// The block of a host's first rank is followed by what its ranks share:
//
//   all scalars | slice counters | slice flags | sums
//
// Flags contain the number of the step (counted by the reducer, from 1) in which they were last set, and counters keep
// counting from step to step, so nothing is ever cleared.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/transport/doorbell.hpp"

namespace lockstep::comm {

using Flag = std::atomic<std::uint64_t>;

struct RegionShape {
  struct Bucket {
    std::int64_t partial = 0;  ///< elements of one of its partial sums
    std::int64_t sum = 0;      ///< elements of its sum
    int slices = 0;
  };
  std::vector<Bucket> buckets;
  int partials = 0;             ///< partial sums that there is room for
  std::size_t scalars = 0;      ///< doubles in a slot for one rank's scalars
  std::size_t all_scalars = 0;  ///< doubles in a slot for all ranks' scalars
};

class Region {
 public:
  /// Counter `ready` tells which gathering of scalars the slot holds.
  struct ScalarSlot {
    alignas(64) Flag ready{0};
    std::uint32_t flags = 0;
    std::atomic<int> waits_for{-1};  ///< in all_scalar_slot(): the rank that the host's first rank is waiting for
  };

  /// The doorbell must outlive it.
  Region(std::byte* block, const RegionShape& shape, Doorbell& doorbell);
  /// `is_first`: whether the rank is its host's first.
  [[nodiscard]] static std::size_t bytes(const RegionShape& shape, bool is_first);
  /// What the offsets follow from (HostBlock::layout).
  [[nodiscard]] static std::string layout(const RegionShape& shape);
  /// Constructs the header and flags in the owner's block, before peers see it.
  static void construct(std::byte* block, const RegionShape& shape, bool is_first);

  Doorbell& doorbell() const { return *doorbell_; }
  /// The step that this rank has begun: it no longer reads anything of the previous step.
  Flag& begun() const { return header().begun; }
  ScalarSlot& scalar_slot(std::uint64_t number) const { return header().slots[number % 2]; }
  double* scalars(std::uint64_t number) const;
  /// In the region of the host's first rank: for the scalars of all ranks of all hosts.
  ScalarSlot& all_scalar_slot(std::uint64_t number) const { return header().all_slots[number % 2]; }
  double* all_scalars(std::uint64_t number) const;
  /// Set when root `root` of this rank's bucket is in partial().
  Flag& partial_ready(int root, int bucket) const;
  float* partial(int root, int bucket) const;
  /// In the region of the host's first rank: set when this slice of the bucket is in sums().
  Flag& slice_ready(int slice, int bucket) const;
  /// Also there: how many slices of the bucket have become ready since the region was made.
  Flag& slices_counted(int bucket) const { return flags(offsets_.counters)[bucket]; }
  float* sums(int bucket) const;

 private:
  struct Header {
    alignas(64) Flag begun{0};
    std::array<ScalarSlot, 2> slots, all_slots;
  };
  struct Offsets {
    std::size_t scalars = 0, partial_flags = 0, partials = 0, all_scalars = 0, counters = 0, slice_flags = 0, sums = 0,
                end = 0;
    std::int64_t partial_elements = 0;
    std::vector<std::int64_t> partial_start, sum_start;  ///< by bucket, as is what follows
    std::vector<std::size_t> first_slice;
  };
  [[nodiscard]] static Offsets offsets(const RegionShape& shape);
  Header& header() const { return *reinterpret_cast<Header*>(block_); }
  Flag* flags(std::size_t offset) const { return reinterpret_cast<Flag*>(block_ + offset); }
  std::size_t buckets() const { return offsets_.partial_start.size(); }

  std::byte* block_;
  Doorbell* doorbell_;
  Offsets offsets_;
  std::size_t scalar_count_, all_scalar_count_;
};

}  // namespace lockstep::comm
