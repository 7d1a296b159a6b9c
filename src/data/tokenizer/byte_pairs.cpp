#include "data/tokenizer/byte_pairs.hpp"

#include <algorithm>

namespace lockstep::data {

/// A merge that was possible when it was noted.
struct BytePairs::Candidate {
  std::int32_t rank;
  std::int32_t at;  ///< the left symbol
  std::int32_t merged;
  /// For a heap whose top comes first.
  bool operator<(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
};

/// Symbols as a list: a merged one stays where its left one stood.
struct BytePairs::Chain {
  std::vector<std::int32_t>& symbols;
  std::vector<std::int32_t> before, after;  ///< -1: none

  explicit Chain(std::vector<std::int32_t>& all) : symbols(all) {
    const std::int32_t count = all.size();
    for (std::int32_t i = 0; i < count; ++i) {
      before.push_back(i - 1);
      after.push_back(i + 1 < count ? i + 1 : -1);
    }
  }
  std::int32_t symbol(std::int32_t at) const { return symbols[at]; }
  std::int32_t next(std::int32_t at) const { return after[at]; }
  void join(std::int32_t at, std::int32_t merged) {
    const std::size_t right = next(at);
    symbols[at] = merged;
    symbols[right] = -1;
    after[at] = after[right];
    if (after[right] >= 0) before[after[right]] = at;
  }
};

void BytePairs::reserve(std::size_t count) {
  if (2 * count <= merges_.size()) return;
  std::size_t size = 16;
  while (size < 2 * count) size *= 2;
  std::vector<Merge> old(size);
  old.swap(merges_);
  for (const Merge& merge : old) {
    if (merge.key != kNone) merges_[place_of(merge.key)] = merge;
  }
}

void BytePairs::add(std::int32_t left, std::int32_t right, std::int32_t rank, std::int32_t merged) {
  reserve(count_ + 1);
  Merge& merge = merges_[place_of(key(left, right))];
  count_ += merge.key == kNone ? 1 : 0;
  merge = {key(left, right), rank, merged};
}

void BytePairs::merge(std::vector<std::int32_t>& symbols) const {
  Chain chain(symbols);
  std::vector<Candidate> heap;
  const auto note = [&](std::int32_t at) {
    if (at < 0 || chain.next(at) < 0) return;
    const Merge* const found = find(chain.symbol(at), chain.symbol(chain.next(at)));
    if (found == nullptr) return;
    heap.push_back({found->rank, at, found->merged});
    std::push_heap(heap.begin(), heap.end());
  };
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(symbols.size()); ++i) note(i);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const Candidate top = heap.back();
    heap.pop_back();
    if (chain.symbol(top.at) < 0 || chain.next(top.at) < 0) continue;
    // Neighbours may have changed since.
    const Merge* const still = find(chain.symbol(top.at), chain.symbol(chain.next(top.at)));
    if (still == nullptr || still->merged != top.merged) continue;
    chain.join(top.at, top.merged);
    note(chain.before[top.at]);
    note(top.at);
  }
  std::erase(symbols, -1);
}

}  // namespace lockstep::data
