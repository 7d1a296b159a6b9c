// Tokenizers as Hugging Face's tokenizer.json describes them: text to tokens and back, token for token what its library
// `tokenizers` makes of the same file.
//
// Added tokens are looked for first; what they leave is normalized and split into words, and a model makes tokens of
// each word.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizer/split_pattern.hpp"
#include "data/tokenizer/text_steps.hpp"
#include "data/tokenizer/token_models.hpp"
#include "data/tokenizer/token_texts.hpp"

namespace lockstep::data {

/// A token that is looked for in the text before anything else: <|endoftext|>.
struct AddedToken {
  std::int32_t id = 0;
  std::string text;
  bool strips_left = false, strips_right = false;  ///< takes white space beside it
  bool single_word = false;                        ///< not beside letters and the like
  bool special = false;                            ///< left out of decoded text
};

/// What a tokenizer.json says (tokenizer_file.hpp reads it).
struct TokenizerParts {
  std::vector<std::string> texts;  ///< by token, as the file has them
  std::vector<bool> known;         ///< by token; not: a number that no token has
  std::vector<Normalizer> normalizers;
  bool only_nfc = false;                ///< is all of the normalizers
  std::unique_ptr<SplitPattern> words;  ///< which `splits` go on with; null: all text between added tokens is one word
  std::vector<PreTokenizer> splits;
  bool lines = false;  ///< no line end changes what is before or behind it
  std::unique_ptr<TokenModel> model;
  std::vector<AddedToken> added;
  std::vector<AddedToken> added_later;       ///< looked for in what the others leave, when it is normalized
  std::vector<std::int32_t> prefix, suffix;  ///< around a text
  std::vector<TokenText> decoders;
  bool joins_by_spaces = false;  ///< there is no decoder
  bool holds_space = false;      ///< a space is written when more follows
};

class TextTokenizer {
 public:
  explicit TextTokenizer(TokenizerParts parts);
  ~TextTokenizer();
  TextTokenizer(const TextTokenizer&) = delete;
  TextTokenizer& operator=(const TextTokenizer&) = delete;

  /// Largest number of a token + 1.
  std::int64_t vocabulary() const { return parts_.texts.size(); }
  /// What its post-processor puts before and after each text.
  const std::vector<std::int32_t>& prefix() const { return parts_.prefix; }
  const std::vector<std::int32_t>& suffix() const { return parts_.suffix; }
  std::optional<std::int32_t> added_token(std::string_view text) const;
  /// Whether parts of this text can be encoded by themselves.
  bool can_cut(std::string_view text) const;

  /// One thread's way from text to tokens.
  class Encoder {
   public:
    explicit Encoder(const TextTokenizer& tokenizer);
    ~Encoder();
    Encoder(const Encoder&) = delete;
    Encoder& operator=(const Encoder&) = delete;

    /// Call before another text. `cuts`: can_cut() of it.
    void begin(bool cuts);
    /// Appends the tokens of the piece that begins at `from` to `out` and returns where it ends: where the next one
    /// begins. If the text can be cut, what follows from a place does not depend on how it was reached; otherwise the
    /// first call is for place 0. `text` is UTF-8.
    std::size_t next(std::string_view text, std::size_t from, std::vector<std::int32_t>& out);

   private:
    class Words;
    std::unique_ptr<Words> words_;
  };

  /// Without prefix and suffix. Throws Error(data) that names `where` if the text is not UTF-8.
  std::vector<std::int32_t> encode(std::string_view text, const std::string& where) const;
  /// The text of a token that is not a text's first; "" for a number that no token has.
  std::string piece(std::int32_t token) const { return text_of(token, false); }
  /// From the tokens of a whole text, one after the other, to its bytes, without special tokens.
  class Decoder {
   public:
    explicit Decoder(const TextTokenizer& tokenizer);
    [[nodiscard]] std::string next(std::int32_t token);

   private:
    const TextTokenizer& tokenizer_;
    bool first_ = true;
    bool holds_space_ = false;
  };
  Decoder decoder() const { return Decoder(*this); }

 private:
  class AddedFinder;
  std::string text_of(std::int32_t token, bool first) const;
  const TokenizerParts parts_;
  std::vector<std::uint8_t> added_;  ///< by token: 0: not added, 1: added, 2: special
  std::unique_ptr<AddedFinder> first_, later_;
};

}  // namespace lockstep::data
