// Tokens by their text. Vocabularies have 250,000 tokens, and reading the merges of one asks for 1,500,000 of them, so
// the table is flat: a look-up touches one slot and the text that it compares.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/error.hpp"

namespace lockstep::data {

class TokenNumbers {
 public:
  void reserve(std::size_t count) {
    if (2 * count > slots_.size()) rebuild(2 * count);
  }
  std::size_t size() const { return count_; }
  /// -1: none.
  std::int32_t find(std::string_view text) const {
    return slots_.empty() ? -1 : slots_[place_of(text, std::hash<std::string_view>()(text))].number;
  }
  /// `number`: at least 0. Of equal texts the last one counts.
  void set(std::string_view text, std::int32_t number) {
    reserve(count_ + 1);
    const std::size_t hash = std::hash<std::string_view>()(text);
    Slot& slot = slots_[place_of(text, hash)];
    if (slot.number < 0) {
      LOCKSTEP_CHECK(texts_.size() + text.size() <= std::numeric_limits<std::uint32_t>::max(), "a vocabulary's texts");
      slot = {tag_of(hash), static_cast<std::uint32_t>(texts_.size()), static_cast<std::uint32_t>(text.size()), number};
      texts_ += text;
      ++count_;
    }
    slot.number = number;
  }
  /// Calls take(text, number) for each token. The texts stay where they are until another one is set.
  template <class Take>
  void for_each(const Take& take) const {
    for (const Slot& slot : slots_) {
      if (slot.number >= 0) take(text_of(slot), slot.number);
    }
  }

 private:
  struct Slot {
    std::uint32_t tag = 0;  ///< bits of the hash that do not say which slot
    std::uint32_t begin = 0, length = 0;
    std::int32_t number = -1;  ///< -1: empty
  };

  static std::uint32_t tag_of(std::size_t hash) { return hash >> 32U; }
  std::string_view text_of(const Slot& slot) const { return std::string_view(texts_).substr(slot.begin, slot.length); }
  /// Of the text, or of the empty slot where it belongs.
  std::size_t place_of(std::string_view text, std::size_t hash) const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
      const Slot& slot = slots_[at];
      if (slot.number < 0 || (slot.tag == tag_of(hash) && text_of(slot) == text)) return at;
    }
  }
  void rebuild(std::size_t slots) {
    std::size_t size = 16;
    while (size < slots) size *= 2;
    std::vector<Slot> old(size);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number >= 0) slots_[place_of(text_of(slot), std::hash<std::string_view>()(text_of(slot)))] = slot;
    }
  }

  std::vector<Slot> slots_;  ///< a power of two, at least half of them empty
  std::string texts_;
  std::size_t count_ = 0;
};

}  // namespace lockstep::data
