// Strict UTF-8: no overlong forms, no surrogates.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::data {

/// Throws Error(data) that names `where` and the byte.
[[nodiscard]] std::u32string from_utf8(std::string_view text, const std::string& where);
/// The same without the characters.
void require_utf8(std::string_view text, const std::string& where);
/// Where the first byte is that is not UTF-8; the text's size: nowhere.
[[nodiscard]] std::size_t first_not_utf8(std::string_view text);
/// Length in bytes of the character that begins with `lead`; 1 if no character does.
[[nodiscard]] inline std::size_t utf8_length(char lead) {
  const auto c = static_cast<unsigned char>(lead);
  if (c >= 0xF0) return 4;
  if (c >= 0xE0) return 3;
  return c >= 0xC0 ? 2 : 1;
}
[[nodiscard]] std::string to_utf8(char32_t character);

}  // namespace lockstep::data
