#include "data/tokenizer/text_encoder.hpp"

#include <algorithm>

#include "data/readers/common.hpp"

namespace lockstep::data {

std::unique_ptr<TextTokenizer::Encoder> Encoders::take() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return std::make_unique<TextTokenizer::Encoder>(tokenizer_);
  auto encoder = std::move(idle_.back());
  idle_.pop_back();
  return encoder;
}

void Encoders::give(std::unique_ptr<TextTokenizer::Encoder> encoder) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(encoder));
}

namespace {

struct WordEnd {
  std::size_t at = 0, tokens = 0;  ///< of the piece's, those up to it
};

struct TextPiece {
  std::size_t begin = 0, until = 0;
  std::size_t end = 0;  ///< of the last word, which may lie beyond `until`
  std::vector<std::int32_t> tokens;
  std::vector<WordEnd> first_words;
};

constexpr std::size_t kFirstWords = 64;

void encode_piece(Encoders& encoders, std::string_view text, bool cuts, TextPiece& piece) {
  auto encoder = encoders.take();
  encoder->begin(cuts);
  piece.end = piece.begin;
  while (piece.end < piece.until) {
    piece.end = encoder->next(text, piece.end, piece.tokens);
    if (piece.first_words.size() < kFirstWords) piece.first_words.push_back({piece.end, piece.tokens.size()});
  }
  encoders.give(std::move(encoder));
}

std::size_t character_from(std::string_view text, std::size_t at) {
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) ++at;
  return at;
}

std::vector<TextPiece> cut_text(std::string_view text, std::size_t from, std::size_t until, std::size_t piece_bytes) {
  std::vector<TextPiece> pieces;
  for (std::size_t at = from; at < until;) {
    const std::size_t end = std::min(character_from(text, std::min(at + piece_bytes, until)), until);
    pieces.push_back({.begin = at, .until = end});
    at = end;
  }
  return pieces;
}

/// How many of the piece's tokens belong to words before `at`; none: no word of the piece is known to end there.
std::optional<std::size_t> tokens_before(const TextPiece& piece, std::size_t at) {
  if (piece.begin == at) return 0;
  for (const WordEnd& word : piece.first_words) {
    if (word.at == at) return word.tokens;
  }
  return std::nullopt;
}

}  // namespace

std::size_t encode_words(Encoders& encoders, std::string_view text, bool cuts, std::size_t from, std::size_t until,
                         std::size_t piece_bytes, int threads, std::vector<std::int32_t>& out) {
  if (!cuts) {
    piece_bytes = text.size();
    until = text.size();
  }
  auto pieces = cut_text(text, from, until, piece_bytes);
  parallel_for(pieces.size(), threads, [&](std::size_t i) { encode_piece(encoders, text, cuts, pieces[i]); });
  std::size_t at = from;
  for (TextPiece& piece : pieces) {
    if (at >= piece.until) continue;  // a word goes all through it
    auto unneeded = tokens_before(piece, at);
    if (!unneeded) {
      piece = {.begin = at, .until = piece.until};
      encode_piece(encoders, text, cuts, piece);
      unneeded = 0;
    }
    out.insert(out.end(), piece.tokens.begin() + (*unneeded), piece.tokens.end());
    at = piece.end;
  }
  return at;
}

}  // namespace lockstep::data
