// The layout of a rank's block of host memory, as the exchange uses it. Peers of the same host find everything
// by the same shape.
//
//   doorbell | begun | scalar slots | slice flags | partial flags | partial sums | sums (first rank of a host)
//
// Flags hold the number of the step (counted by the exchange, from 1) for which they were set last, so nobody
// ever clears one.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/doorbell.hpp"

namespace lockstep::comm {

using Flag = std::atomic<std::uint64_t>;

struct RegionShape {
  std::vector<std::int64_t> bucket_elements;
  int ranks = 1;
  int partials = 0;  ///< partial sums that there is room for
  int scalars = 0;   ///< doubles in a scalar slot
};

class Region {
 public:
  /// Counter `ready` says which exchange of scalars the slot holds.
  struct ScalarSlot {
    alignas(64) Flag ready{0};
    std::uint32_t flags = 0;
  };

  Region(std::byte* block, const RegionShape& shape);
  [[nodiscard]] static std::size_t bytes(const RegionShape& shape, bool with_sums);
  /// Makes the header and flags; by the owner, before peers see the block.
  void construct();

  [[nodiscard]] Doorbell& doorbell() const { return header().doorbell; }
  /// The step that this rank has begun: it no longer reads anything of the step before.
  [[nodiscard]] Flag& begun() const { return header().begun; }
  [[nodiscard]] ScalarSlot& scalar_slot(std::uint64_t number) const { return header().slots[number % 2]; }
  [[nodiscard]] double* scalars(std::uint64_t number) const;
  /// Root `root` of this rank's bucket stands in partial().
  [[nodiscard]] Flag& partial_ready(int root, int bucket) const;
  [[nodiscard]] float* partial(int root, int bucket) const;
  /// In the region of the host's first rank: `owner`'s slice of the bucket stands in sums().
  [[nodiscard]] Flag& slice_ready(int owner, int bucket) const;
  [[nodiscard]] float* sums(int bucket) const;

 private:
  struct Header {
    alignas(64) Doorbell doorbell;
    alignas(64) Flag begun{0};
    std::array<ScalarSlot, 2> slots;
  };
  struct Places {
    std::size_t scalars = 0, slice_flags = 0, partial_flags = 0, partials = 0, sums = 0, end = 0;
    std::int64_t partial_elements = 0;
    std::vector<std::int64_t> bucket_start;
  };
  [[nodiscard]] static Places places(const RegionShape& shape);
  [[nodiscard]] Header& header() const { return *reinterpret_cast<Header*>(block_); }
  [[nodiscard]] Flag* flags(std::size_t place) const { return reinterpret_cast<Flag*>(block_ + place); }
  [[nodiscard]] std::size_t buckets() const { return places_.bucket_start.size(); }

  std::byte* block_;
  Places places_;
  std::size_t scalar_count_;
};

}  // namespace lockstep::comm
