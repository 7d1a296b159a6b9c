// From words to tokens, in the ways that a tokenizer.json names.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/byte_pairs.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

// Tokens by their text. Vocabularies have 250,000 tokens, and reading the merges of one asks for 1,500,000 of them, so
// the table is flat: a look-up touches one slot and the text that it compares.

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

class TokenModel {
 public:
  TokenModel() = default;
  virtual ~TokenModel() = default;
  TokenModel(const TokenModel&) = delete;
  TokenModel& operator=(const TokenModel&) = delete;
  /// Appends the tokens of a word, which is not empty. Throws Error(data) for one that it has no tokens for.
  virtual void append(std::string_view word, std::vector<std::int32_t>& tokens) const = 0;

 protected:
  /// Throws if there is none: -1.
  static std::int32_t required(std::int32_t unknown, std::string_view word);
};

/// Byte-pair encoding. `byte_level`: words are bytes, and `numbers` are by bytes; otherwise they are characters.
struct BytePairParts {
  TokenNumbers numbers;
  BytePairs pairs;
  std::array<std::int32_t, 256> byte_tokens{};  ///< of a byte by itself, -1: none
  bool byte_level = false;
  bool falls_back = false;     ///< a character without a token is its bytes
  bool whole_words = false;    ///< a word that is a token is not made of pairs
  bool has_unknown = false;    ///< a character without a token is `unknown`; otherwise nothing
  bool fuses_unknown = false;  ///< several in a row are one
  std::int32_t unknown = -1;
  std::string prefix;  ///< of characters that don't begin a word
  std::string suffix;  ///< of the character that ends a word
};
[[nodiscard]] std::unique_ptr<TokenModel> make_byte_pair_model(BytePairParts parts);

/// The longest token that a word begins with, then that of the rest, with `prefix`; `unknown` where there is none.
struct WordPieceParts {
  TokenNumbers numbers;
  std::int32_t unknown = -1;
  std::string prefix;
  std::size_t longest = 100;  ///< in characters; longer words are unknown
};
[[nodiscard]] std::unique_ptr<TokenModel> make_word_piece_model(WordPieceParts parts);

[[nodiscard]] std::unique_ptr<TokenModel> make_word_level_model(TokenNumbers numbers, std::int32_t unknown);

/// The tokens that a word is most likely made of (Kudo 2018), each with its logarithmic probability.
struct UnigramParts {
  std::vector<std::pair<std::string, double>> tokens;  ///< by number
  std::int32_t unknown = -1;
  bool falls_back = false;  ///< what is unknown is its bytes, if all of these are tokens
};
[[nodiscard]] std::unique_ptr<TokenModel> make_unigram_model(UnigramParts parts);

}  // namespace lockstep::data
