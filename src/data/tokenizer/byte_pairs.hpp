// Byte-pair encoding (Sennrich, Haddow, Birch 2016): a word starts as one symbol for each byte or character, and
// neighbours are merged, those of the lowest rank first, of equal ones the leftmost.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace lockstep::data {

class BytePairs {
 public:
  /// The pair becomes `merged`; of two merges of one pair the later one counts.
  void add(std::int32_t left, std::int32_t right, std::int32_t rank, std::int32_t merged) {
    merges_[key(left, right)] = {rank, merged};
  }
  void reserve(std::size_t count) { merges_.reserve(count); }
  /// Merges in place, in n log n steps.
  void merge(std::vector<std::int32_t>& symbols) const;

 private:
  struct Merge {
    std::int32_t rank, merged;
  };
  struct Spread {
    std::size_t operator()(std::uint64_t k) const { return static_cast<std::size_t>((k * 0x9E3779B97F4A7C15U) >> 20U); }
  };
  struct Candidate;
  struct Chain;
  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32U | static_cast<std::uint32_t>(right);
  }
  [[nodiscard]] const Merge* find(std::int32_t left, std::int32_t right) const {
    const auto found = merges_.find(key(left, right));
    return found == merges_.end() ? nullptr : &found->second;
  }

  std::unordered_map<std::uint64_t, Merge, Spread> merges_;
};

}  // namespace lockstep::data
