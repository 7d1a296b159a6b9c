// The steps from a text to the words that a model makes tokens of, as a tokenizer.json names them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/tokenizer/checked_json.hpp"

namespace lockstep::data {

/// A word, or what is not yet split into words.
struct TextPart {
  std::string text;
  bool at_start = false;  ///< begins where the text does
};

using Normalizer = std::function<void(std::string&)>;
using PreTokenizer = std::function<void(std::vector<TextPart>&)>;

/// Both read the entry `step` of the type `type`; null if the type is not known.
[[nodiscard]] Normalizer read_normalizer(CheckedObject& step, const std::string& type);
[[nodiscard]] PreTokenizer read_pre_tokenizer(CheckedObject& step, const std::string& type);

/// The same of ByteLevel without writing bytes as characters; null if nothing else is to be done.
[[nodiscard]] PreTokenizer read_byte_level_words(CheckedObject& step);
/// Writes bytes as characters.
[[nodiscard]] PreTokenizer bytes_to_characters();

/// The words of GPT-2: contractions, letters, numbers, the rest, white space.
inline constexpr const char* kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// The regular expression that a pattern {"String": ...} or {"Regex": ...} is.
[[nodiscard]] std::string read_pattern(CheckedObject& step);

}  // namespace lockstep::data
