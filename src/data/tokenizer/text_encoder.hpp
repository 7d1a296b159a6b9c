// Tokens of a text, by several threads that encode pieces of it at once, exactly as one would from its beginning.
//
// A piece begins anywhere. Where that is within a word, its first words are others than the text's; but since what
// follows from a place does not depend on how it was reached, all is as it should be from the first place on that is
// the end of a word in both. Where none of a piece's first words ends so, the piece is encoded again.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.hpp"

namespace lockstep::data {

/// Encoders that threads borrow, so that what these remember of words is kept.
class Encoders {
 public:
  explicit Encoders(const TextTokenizer& tokenizer) : tokenizer_(tokenizer) {}
  [[nodiscard]] std::unique_ptr<TextTokenizer::Encoder> take();
  void give(std::unique_ptr<TextTokenizer::Encoder> encoder);
  const TextTokenizer& tokenizer() const { return tokenizer_; }

 private:
  const TextTokenizer& tokenizer_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<TextTokenizer::Encoder>> idle_;
};

/// Appends the tokens of the words from `from`, where a word begins, up to the first end of a word at `until` or later,
/// and returns that end. Pieces have `piece_bytes` each; a text that can't be cut (`cuts`: TextTokenizer::can_cut()) is
/// one, from 0 to its end.
std::size_t encode_words(Encoders& encoders, std::string_view text, bool cuts, std::size_t from, std::size_t until,
                         std::size_t piece_bytes, int threads, std::vector<std::int32_t>& out);

}  // namespace lockstep::data
