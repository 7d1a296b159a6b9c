// Bytes as the printable characters by which byte-level vocabularies write them: those of Latin-1 stand for themselves,
// the other bytes for the code points from 256 on, in order.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::data {

/// By byte, the character in UTF-8.
[[nodiscard]] const std::array<std::string, 256>& byte_characters();
/// Appends the character of each byte.
void append_byte_characters(std::string& to, std::string_view bytes);
/// The bytes that a token stands for; the text as it is if some character is of none.
[[nodiscard]] std::string bytes_of_characters(const std::string& token);

}  // namespace lockstep::data
