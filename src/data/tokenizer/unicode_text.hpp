// What Unicode says of characters and texts, by ICU; only unicode_text.cpp includes it.
//
// Hugging Face's `tokenizers` takes normal forms, marks and punctuation from tables of older Unicode versions. Those
// of the same versions are taken here, so that tokens don't depend on ICU's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace lockstep::data {

[[nodiscard]] bool is_white_space(char32_t c);
/// A number in any way: of the categories Nd, Nl and No.
[[nodiscard]] bool is_number(char32_t c);
/// ASCII's, symbols included, and Unicode's.
[[nodiscard]] bool is_punctuation(char32_t c);
/// \w of regular expressions.
[[nodiscard]] bool is_word_character(char32_t c);
[[nodiscard]] bool is_mark(char32_t c);
[[nodiscard]] bool is_nonspacing_mark(char32_t c);
/// Controls, formats, and those for private use.
[[nodiscard]] bool is_control(char32_t c);
/// Appends the lower case, which may be several characters.
void append_lower(std::string& text, char32_t c);

enum class NormalForm : std::uint8_t { nfc, nfd, nfkc, nfkd };
void normalize(NormalForm form, std::string& text);
[[nodiscard]] bool is_normal(NormalForm form, std::string_view text);

/// Calls `take` with each character that a reader sees as one (an extended grapheme cluster).
void for_each_grapheme(std::string_view text, const std::function<void(std::string_view)>& take);

/// The character of UTF-8 text that begins at `at`, which moves behind it.
[[nodiscard]] char32_t next_character(std::string_view text, std::size_t& at);
/// The character that ends at `at`.
[[nodiscard]] char32_t character_before(std::string_view text, std::size_t at);
void append_utf8(std::string& text, char32_t c);

}  // namespace lockstep::data
