#include "data/tokenizer/charsmap.hpp"

#include <fmt/format.h>

#include <cstring>

#include "data/readers/utf8.hpp"
#include "data/tokenizer/unicode_text.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

Charsmap::Charsmap(std::string_view bytes, const std::string& where) {
  std::uint32_t size = 0;
  if (bytes.size() >= sizeof(size)) std::memcpy(&size, bytes.data(), sizeof(size));
  if (size == 0 || size % sizeof(std::uint32_t) != 0 || size > bytes.size() - sizeof(size)) {
    throw Error(ExitCode::data, fmt::format("{}: expected a compiled normalization of SentencePiece, found {} bytes of "
                                            "something else",
                                            where, bytes.size()));
  }
  units_.resize(size / sizeof(std::uint32_t));
  std::memcpy(units_.data(), bytes.data() + sizeof(size), size);
  texts_ = bytes.substr(sizeof(size) + size);
  require_utf8(texts_, where);
}

// The shortest prefix counts that the map has, which is the library's way, too.
std::optional<std::string_view> Charsmap::replacement(std::string_view characters) const {
  const auto offset_of = [](std::uint32_t unit) { return (unit >> 10U) << ((unit & (1U << 9U)) >> 6U); };
  std::uint32_t at = offset_of(units_[0]);
  for (const char c : characters) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) break;
    at ^= byte;
    if (at >= units_.size() || (units_[at] & (1U << 31U | 0xFFU)) != byte) break;
    const std::uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if (at >= units_.size()) break;
    if ((unit & (1U << 8U)) == 0) continue;
    const std::uint32_t begin = units_[at] & ~(1U << 31U);
    if (begin >= texts_.size()) break;
    return std::string_view(texts_.c_str() + begin);
  }
  return std::nullopt;
}

void Charsmap::normalize(std::string& text) const {
  constexpr std::size_t kLongestGrapheme = 5;
  std::string normal;
  normal.reserve(text.size());
  for_each_grapheme(text, [&](std::string_view grapheme) {
    if (grapheme.size() <= kLongestGrapheme) {
      if (const auto whole = replacement(grapheme)) return void(normal += *whole);
    }
    for (std::size_t at = 0; at < grapheme.size();) {
      const std::string_view character = grapheme.substr(at, utf8_length(grapheme[at]));
      normal += replacement(character).value_or(character);
      at += character.size();
    }
  });
  text = std::move(normal);
}

std::string from_base64(std::string_view text, const std::string& where) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  std::uint32_t bits = 0, count = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) throw Error(ExitCode::data, fmt::format("{}: expected base64", where));
    bits = bits << 6U | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += bits >> count & 0xFFU;
  }
  return bytes;
}

}  // namespace lockstep::data
