#include "data/readers/characters.hpp"

#include <fmt/format.h>

#include "data/readers/utf8.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

constexpr std::size_t kCodePoints = 0x110000;

}  // namespace

bool splits_bytes(const SourceOptions& source) {
  return source.tokenizer == Tokenizer::bytes && source.tokenizer_file.empty();
}

std::vector<std::string> distinct_characters(const std::vector<std::u32string>& parts, const std::string& source) {
  std::vector<bool> occurs(kCodePoints);
  for (const auto& part : parts) {
    for (const char32_t c : part) occurs[c] = true;
  }
  std::vector<std::string> text;
  for (char32_t c = 0; c < kCodePoints; ++c) {
    if (occurs[c]) text.push_back(to_utf8(c));
  }
  if (text.size() > 65'536) {
    throw Error(ExitCode::data,
                fmt::format("{}: {} different characters; expected at most 65536. Use `tokenizer: bytes`", source,
                            text.size()));
  }
  return text;
}

CharacterNumbers::CharacterNumbers(const std::vector<std::string>& vocabulary) : numbers_(kCodePoints, -1) {
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    numbers_.at(from_utf8(vocabulary[i], "the vocabulary").front()) = i;
  }
}

std::uint16_t CharacterNumbers::of(char32_t character, const std::string& where) const {
  if (numbers_[character] < 0) {
    throw Error(ExitCode::data, fmt::format("{}: the character '{}' (U+{:04X}) does not occur in the training text. "
                                            "Use `tokenizer: bytes`, or one text and a fraction of it",
                                            where, to_utf8(character), static_cast<std::uint32_t>(character)));
  }
  return numbers_[character];
}

}  // namespace lockstep::data
