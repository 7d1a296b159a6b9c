// Byte-pair encoding (Sennrich, Haddow, Birch 2016): a word starts as one symbol for each byte or character, and
// neighbours are merged, those of the lowest rank first, of equal ones the leftmost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::data {

class BytePairs {
 public:
  /// The pair becomes `merged`; of two merges of one pair the later one counts.
  void add(std::int32_t left, std::int32_t right, std::int32_t rank, std::int32_t merged);
  void reserve(std::size_t count);
  /// Merges in place, in n log n steps.
  void merge(std::vector<std::int32_t>& symbols) const;

 private:
  struct Merge {
    std::uint64_t key = kNone;
    std::int32_t rank = 0, merged = 0;
  };
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  struct Candidate;
  struct Chain;
  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32U | static_cast<std::uint32_t>(right);
  }
  const Merge* find(std::int32_t left, std::int32_t right) const {
    if (merges_.empty()) return nullptr;
    const Merge& found = merges_[place_of(key(left, right))];
    return found.key == kNone ? nullptr : &found;
  }
  /// Of the pair, or of the empty slot where it belongs.
  std::size_t place_of(std::uint64_t wanted) const {
    const std::size_t mask = merges_.size() - 1;
    std::size_t at = static_cast<std::size_t>((wanted * 0x9E3779B97F4A7C15U) >> 20U) & mask;
    while (merges_[at].key != wanted && merges_[at].key != kNone) at = (at + 1) & mask;
    return at;
  }

  std::vector<Merge> merges_;  ///< a flat table: a power of two, at least half of them empty
  std::size_t count_ = 0;
};

}  // namespace lockstep::data
