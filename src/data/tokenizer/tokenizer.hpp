// Byte-pair tokenizers as Hugging Face's tokenizer.json describes them: text to tokens and back, token for token what
// its library `tokenizers` makes of the same file.
//
// Two kinds: of bytes (GPT-2, RoBERTa, Llama 3), where a regular expression splits text into words and any text can be
// written; and of characters with spaces as U+2581 (Llama 2), where all of a text is one word, and a character that is
// no token is written as its bytes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizer/byte_pairs.hpp"
#include "data/tokenizer/split_pattern.hpp"

namespace lockstep::data {

/// A token that is looked for in the text before anything else: <|endoftext|>.
struct AddedToken {
  std::int32_t id = 0;
  std::string text;
  bool strips_left = false, strips_right = false;  ///< takes white space beside it
  bool special = false;                            ///< left out of decoded text
};

/// What a tokenizer.json says (tokenizer_file.hpp reads it).
struct TokenizerParts {
  std::vector<std::string> pieces;  ///< by token: the bytes that it stands for; empty: a number that no token has
  std::unordered_map<std::string, std::int32_t> numbers;  ///< of pieces, but for those of byte_tokens
  BytePairs pairs;
  std::array<std::int32_t, 256> byte_tokens{};  ///< the tokens that are one byte
  bool characters = false;                      ///< symbols are characters, and spaces U+2581
  std::unique_ptr<SplitPattern> words;          ///< null: all text between added tokens is one word
  bool whole_words = false;                     ///< a word that is a token is not made of pairs
  std::vector<AddedToken> added;
  std::vector<AddedToken> added_later;       ///< looked for in what the others leave
  std::vector<std::int32_t> prefix, suffix;  ///< around a text
};

class BytePairTokenizer {
 public:
  explicit BytePairTokenizer(TokenizerParts parts);
  ~BytePairTokenizer();
  BytePairTokenizer(const BytePairTokenizer&) = delete;
  BytePairTokenizer& operator=(const BytePairTokenizer&) = delete;

  /// Largest number of a token + 1.
  [[nodiscard]] std::int64_t vocabulary() const { return static_cast<std::int64_t>(parts_.pieces.size()); }
  /// What its post-processor puts before and after each text.
  [[nodiscard]] const std::vector<std::int32_t>& prefix() const { return parts_.prefix; }
  [[nodiscard]] const std::vector<std::int32_t>& suffix() const { return parts_.suffix; }
  [[nodiscard]] std::optional<std::int32_t> added_token(std::string_view text) const;
  /// Whether a long text is made of words, so that parts of it can be encoded by themselves.
  [[nodiscard]] bool has_words() const { return parts_.words != nullptr; }

  /// One thread's way from text to tokens.
  class Encoder {
   public:
    explicit Encoder(const BytePairTokenizer& tokenizer);
    ~Encoder();
    Encoder(const Encoder&) = delete;
    Encoder& operator=(const Encoder&) = delete;

    /// Call before another text.
    void begin();
    /// Appends the tokens of the word that begins at `from` to `out` and returns where it ends: where the next one
    /// begins. What follows from a place does not depend on how it was reached. `text` is UTF-8.
    std::size_t next(std::string_view text, std::size_t from, std::vector<std::int32_t>& out);

   private:
    class Words;
    std::unique_ptr<Words> words_;
  };

  /// Without prefix and suffix. Throws Error(data) that names `where` if the text is not UTF-8.
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text, const std::string& where) const;
  /// The bytes of a token; "" for a number that no token has.
  [[nodiscard]] std::string piece(std::int32_t token) const;
  /// From the tokens of a whole text, one after the other, to its bytes, without special tokens.
  class Decoder {
   public:
    explicit Decoder(const BytePairTokenizer& tokenizer);
    [[nodiscard]] std::string next(std::int32_t token);

   private:
    const BytePairTokenizer& tokenizer_;
    std::vector<bool> special_;  ///< by token
    bool strips_space_;          ///< which encoding has put before the text
  };
  [[nodiscard]] Decoder decoder() const { return Decoder(*this); }

 private:
  class AddedFinder;
  const TokenizerParts parts_;
  std::unique_ptr<AddedFinder> first_, later_;
};

}  // namespace lockstep::data
