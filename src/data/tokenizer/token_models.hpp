// From words to tokens, in the ways that a tokenizer.json names.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/byte_pairs.hpp"
#include "data/tokenizer/token_numbers.hpp"

namespace lockstep::data {

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
