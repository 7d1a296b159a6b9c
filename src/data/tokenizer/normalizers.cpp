// The normalizers of a tokenizer.json: each changes a text before it is split.
#include <fmt/format.h>

#include <array>
#include <memory>

#include "data/tokenizer/byte_characters.hpp"
#include "data/tokenizer/charsmap.hpp"
#include "data/tokenizer/split_pattern.hpp"
#include "data/tokenizer/text_steps.hpp"
#include "data/tokenizer/unicode_text.hpp"
#include "data/tokenizer/white_space.hpp"

namespace lockstep::data {
namespace {

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
