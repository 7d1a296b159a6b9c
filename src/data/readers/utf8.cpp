#include "data/readers/utf8.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

/// Length of the character that begins with `lead`; 0: no character does.
std::size_t length_of(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  return lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
}

bool is_allowed(char32_t c, std::size_t length) {
  if (length == 3) return c >= 0x800 && (c < 0xD800 || c > 0xDFFF);
  if (length == 4) return c >= 0x10000 && c <= 0x10FFFF;
  return true;
}

/// `take` gets each character. Returns where the first byte is that is not UTF-8; the text's size: nowhere.
template <class Take>
std::size_t read_characters(std::string_view text, const Take& take) {
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::size_t length = length_of(lead);
    bool valid = length > 0 && at + length <= text.size();
    char32_t c = length == 1 ? lead : lead & (0x7FU >> length);
    for (std::size_t i = 1; valid && i < length; ++i) {
      const auto next = static_cast<unsigned char>(text[at + i]);
      valid = (next & 0xC0U) == 0x80U;
      c = (c << 6U) | (next & 0x3FU);
    }
    if (!valid || !is_allowed(c, length)) return at;
    take(c);
    at += length;
  }
  return text.size();
}

template <class Take>
void read_utf8(std::string_view text, const std::string& where, const Take& take) {
  const std::size_t at = read_characters(text, take);
  if (at == text.size()) return;
  throw Error(ExitCode::data,
              fmt::format("{}: byte {} (0x{:02x}) is not UTF-8. Use `tokenizer: bytes`, or convert the file", where, at,
                          static_cast<unsigned>(static_cast<unsigned char>(text[at]))));
}

}  // namespace

std::u32string from_utf8(std::string_view text, const std::string& where) {
  std::u32string out;
  out.reserve(text.size());
  read_utf8(text, where, [&](char32_t c) { out.push_back(c); });
  return out;
}

void require_utf8(std::string_view text, const std::string& where) {
  read_utf8(text, where, [](char32_t /*c*/) {});
}

std::size_t first_not_utf8(std::string_view text) {
  return read_characters(text, [](char32_t /*c*/) {});
}

std::string to_utf8(char32_t c) {
  const auto byte = [](char32_t bits) { return static_cast<char>(static_cast<unsigned char>(bits)); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0 | (c >> 6)), byte(0x80 | (c & 0x3F))};
  if (c < 0x10000) return {byte(0xE0 | (c >> 12)), byte(0x80 | ((c >> 6) & 0x3F)), byte(0x80 | (c & 0x3F))};
  return {byte(0xF0 | (c >> 18)), byte(0x80 | ((c >> 12) & 0x3F)), byte(0x80 | ((c >> 6) & 0x3F)),
          byte(0x80 | (c & 0x3F))};
}

}  // namespace lockstep::data
