// The normalizers of a tokenizer.json: each changes a text before it is split.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/readers/utf8.hpp"
#include "data/tokenizer/byte_characters.hpp"
#include "data/tokenizer/split_pattern.hpp"
#include "data/tokenizer/text_steps.hpp"
#include "data/tokenizer/unicode_text.hpp"
#include "data/tokenizer/white_space.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

// SentencePiece's compiled normalization: a double array (Aoe 1989, as Darts-clone stores it) from characters to the
// text that replaces them.

class Charsmap {
 public:
  /// Of the file's bytes. Throws Error(data) that begins with `where`.
  Charsmap(std::string_view bytes, const std::string& where);
  void normalize(std::string& text) const;

 private:
  std::optional<std::string_view> replacement(std::string_view characters) const;
  std::vector<std::uint32_t> units_;
  std::string texts_;  ///< each ends with a zero
};

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

/// Throws Error(data) that begins with `where`.
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
    bytes += static_cast<char>(bits >> count & 0xFFU);
  }
  return bytes;
}

/// Makes a text of its characters, one after the other.
template <class Append>
void replace_characters(std::string& text, const Append& append) {
  std::string changed;
  changed.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) append(changed, next_character(text, at));
  text = std::move(changed);
}

void lower(std::string& text) {
  replace_characters(text, append_lower);
}

bool is_chinese(char32_t c) {
  struct Range {
    char32_t first, last;
  };
  static constexpr std::array<Range, 8> kRanges = {{{0x4E00, 0x9FFF},
                                                    {0x3400, 0x4DBF},
                                                    {0x20000, 0x2A6DF},
                                                    {0x2A700, 0x2B73F},
                                                    {0x2B740, 0x2B81F},
                                                    {0x2B920, 0x2CEAF},
                                                    {0xF900, 0xFAFF},
                                                    {0x2F800, 0x2FA1F}}};
  for (const Range& range : kRanges) {
    if (c >= range.first && c <= range.last) return true;
  }
  return false;
}

void clean(std::string& text) {
  replace_characters(text, [](std::string& to, char32_t c) {
    const bool space = c == '\t' || c == '\n' || c == '\r';
    if (c == 0 || c == 0xFFFD || (is_control(c) && !space)) return;
    append_utf8(to, space || is_white_space(c) ? U' ' : c);
  });
}

Normalizer read_bert(CheckedObject& step) {
  const bool cleans = step.get<bool>("clean_text", "true or false");
  const bool chinese = step.get<bool>("handle_chinese_chars", "true or false");
  const bool lowers = step.get<bool>("lowercase", "true or false");
  const bool strips = step.get<bool>("strip_accents", "true, false or null", lowers);
  return [=](std::string& text) {
    if (cleans) clean(text);
    if (chinese) {
      replace_characters(text, [](std::string& to, char32_t c) {
        const bool apart = is_chinese(c);
        if (apart) to += ' ';
        append_utf8(to, c);
        if (apart) to += ' ';
      });
    }
    if (strips) {
      normalize(NormalForm::nfd, text);
      replace_characters(text, [](std::string& to, char32_t c) {
        if (!is_nonspacing_mark(c)) append_utf8(to, c);
      });
    }
    if (lowers) lower(text);
  };
}

/// For neural machine translation: as SentencePiece's nmt.
void normalize_nmt(std::string& text) {
  replace_characters(text, [](std::string& to, char32_t c) {
    const bool removed =
        (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
    if (removed) return;
    const bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                       c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
    append_utf8(to, space ? U' ' : c);
  });
}

Normalizer read_strip(CheckedObject& step) {
  const bool left = step.get<bool>("strip_left", "true or false");
  const bool right = step.get<bool>("strip_right", "true or false");
  return [=](std::string& text) {
    if (right) text.resize(white_space_before(text, 0, text.size()));
    if (left) text.erase(0, white_space_after(text, 0));
  };
}

Normalizer read_replace(CheckedObject& step) {
  const auto pattern = std::make_shared<const SplitPattern>(read_pattern(step), step.place_of("pattern"));
  const auto content = step.get<std::string>("content", "a text");
  return [=](std::string& text) {
    std::string changed;
    std::size_t done = 0;
    for (const TextSpan& match : pattern->matches(text)) {
      changed.append(text, done, match.begin - done).append(content);
      done = match.end;
    }
    if (done == 0 && changed.empty()) return;
    text = changed.append(text, done);
  };
}

Normalizer read_prepend(CheckedObject& step) {
  const auto before = step.get<std::string>("prepend", "a text");
  return [=](std::string& text) {
    if (!text.empty()) text.insert(0, before);
  };
}

Normalizer read_precompiled(CheckedObject& step) {
  const auto text = step.get<std::string>("precompiled_charsmap", "a text", "");
  if (text.empty()) return [](std::string&) {};
  const std::string where = step.place_of("precompiled_charsmap");
  const auto map = std::make_shared<const Charsmap>(from_base64(text, where), where);
  return [=](std::string& changed) { map->normalize(changed); };
}

void strip_accents(std::string& text) {
  replace_characters(text, [](std::string& to, char32_t c) {
    if (!is_mark(c)) append_utf8(to, c);
  });
}

}  // namespace

Normalizer read_normalizer(CheckedObject& step, const std::string& type) {
  static constexpr std::array<std::pair<std::string_view, NormalForm>, 4> kForms = {
      {{"NFC", NormalForm::nfc}, {"NFD", NormalForm::nfd}, {"NFKC", NormalForm::nfkc}, {"NFKD", NormalForm::nfkd}}};
  for (const auto& [name, form] : kForms) {
    if (type == name) return [form = form](std::string& text) { normalize(form, text); };
  }
  if (type == "BertNormalizer") return read_bert(step);
  if (type == "Strip") return read_strip(step);
  if (type == "StripAccents") return strip_accents;
  if (type == "Lowercase") return lower;
  if (type == "Nmt") return normalize_nmt;
  if (type == "Precompiled") return read_precompiled(step);
  if (type == "Replace") return read_replace(step);
  if (type == "Prepend") return read_prepend(step);
  if (type == "ByteLevel") {
    return [](std::string& text) {
      std::string bytes;
      append_byte_characters(bytes, text);
      text = std::move(bytes);
    };
  }
  return nullptr;
}

}  // namespace lockstep::data
