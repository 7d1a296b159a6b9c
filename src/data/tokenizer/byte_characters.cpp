#include "data/tokenizer/byte_characters.hpp"

#include "data/tokenizer/unicode_text.hpp"

namespace lockstep::data {
namespace {

std::array<std::int32_t, 0x180> make_bytes_of_characters() {
  std::array<std::int32_t, 0x180> bytes{};
  bytes.fill(-1);
  std::size_t next = 256;
  for (std::int32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    bytes.at(printable ? static_cast<std::size_t>(byte) : next++) = byte;
  }
  return bytes;
}

const std::array<std::int32_t, 0x180>& bytes_by_character() {
  static const auto kBytes = make_bytes_of_characters();
  return kBytes;
}

std::array<std::string, 256> make_byte_characters() {
  std::array<std::string, 256> characters;
  const auto& bytes = bytes_by_character();
  for (std::size_t c = 0; c < bytes.size(); ++c) {
    if (bytes.at(c) >= 0) append_utf8(characters.at(bytes.at(c)), static_cast<char32_t>(c));
  }
  return characters;
}

}  // namespace

const std::array<std::string, 256>& byte_characters() {
  static const auto kCharacters = make_byte_characters();
  return kCharacters;
}

void append_byte_characters(std::string& to, std::string_view bytes) {
  const auto& characters = byte_characters();
  for (const char c : bytes) to += characters[static_cast<unsigned char>(c)];
}

std::string bytes_of_characters(const std::string& token) {
  const auto& known = bytes_by_character();
  std::string bytes;
  for (std::size_t at = 0; at < token.size();) {
    const char32_t c = next_character(token, at);
    if (c >= known.size() || known[c] < 0) return token;
    bytes += static_cast<char>(known[c]);
  }
  return bytes;
}

}  // namespace lockstep::data
