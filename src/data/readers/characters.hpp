// Characters (Unicode code points) as tokens: those of a text, numbered in the order of their code points. And bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/job.hpp"

namespace lockstep::data {

/// How many tokens there are of bytes.
inline constexpr std::int64_t kByteTokens = 256;
/// Whether the tokens of `source` are bytes, and no file with a tokenizer says otherwise.
[[nodiscard]] bool splits_bytes(const SourceOptions& source);

/// The distinct characters, in order. Throws Error(data), beginning with `source`, if they are too many for 16 bits.
[[nodiscard]] std::vector<std::string> distinct_characters(const std::vector<std::u32string>& parts,
                                                           const std::string& source);

class CharacterNumbers {
 public:
  explicit CharacterNumbers(const std::vector<std::string>& vocabulary);
  /// Throws Error(data), beginning with `where`, for a character that the training text has not.
  std::uint16_t of(char32_t character, const std::string& where) const;

 private:
  std::vector<std::int32_t> numbers_;  ///< by code point; -1: none
};

}  // namespace lockstep::data
