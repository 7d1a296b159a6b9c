#include "data/tokenizer/unicode_text.hpp"

#include <fmt/format.h>
#include <unicode/brkiter.h>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>
#include <unicode/utext.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <array>
#include <memory>

#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

void check_icu(UErrorCode status, const char* call) {
  if (U_FAILURE(status)) throw Error(ExitCode::infrastructure, fmt::format("ICU: {}: {}", call, u_errorName(status)));
}

/// ICU takes sizes of 32 bits.
constexpr std::size_t kMostAtOnce = 1 << 20;

bool in_categories(char32_t c, std::uint32_t mask) {
  return (U_GET_GC_MASK(static_cast<UChar32>(c)) & mask) != 0;
}

bool is_older_than(char32_t c, std::uint8_t major, std::uint8_t minor) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(c), age);
  return age[0] < major || (age[0] == major && age[1] <= minor);
}

const icu::Normalizer2& normalizer_of(NormalForm form) {
  struct Forms {
    std::unique_ptr<const icu::UnicodeSet> old;
    std::array<std::unique_ptr<const icu::FilteredNormalizer2>, 4> all;
    Forms() {
      UErrorCode status = U_ZERO_ERROR;
      auto set = std::make_unique<icu::UnicodeSet>(icu::UnicodeString("[:age=9.0:]"), status);
      check_icu(status, "UnicodeSet");
      set->freeze();
      old = std::move(set);
      const std::array<const icu::Normalizer2*, 4> plain = {
          icu::Normalizer2::getNFCInstance(status), icu::Normalizer2::getNFDInstance(status),
          icu::Normalizer2::getNFKCInstance(status), icu::Normalizer2::getNFKDInstance(status)};
      check_icu(status, "Normalizer2");
      for (std::size_t i = 0; i < all.size(); ++i) {
        all.at(i) = std::make_unique<const icu::FilteredNormalizer2>(*plain.at(i), *old);
      }
    }
  };
  static const Forms kForms;
  return *kForms.all.at(static_cast<std::size_t>(form));
}

/// Where a piece of text ends that can be looked at by itself: behind the end of a line.
std::size_t piece_end(std::string_view text, std::size_t from) {
  const std::size_t line_end = text.find('\n', from + std::min(kMostAtOnce, text.size() - from));
  const std::size_t end = line_end == std::string_view::npos ? text.size() : line_end + 1;
  if (end - from < std::size_t{1} << 31U) return end;
  throw Error(ExitCode::data, "a text without a line end in 2 GB; expected shorter lines for this tokenizer");
}

icu::StringPiece piece_of(std::string_view text) {
  return {text.data(), static_cast<std::int32_t>(text.size())};
}

}  // namespace

// The characters that are named below have changed their categories since.

bool is_white_space(char32_t c) {
  return u_isUWhiteSpace(static_cast<UChar32>(c)) != 0;
}

bool is_number(char32_t c) {
  return in_categories(c, U_GC_N_MASK);
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) return c > ' ' && c < 0x7F && !in_categories(c, U_GC_L_MASK | U_GC_ND_MASK);
  return (in_categories(c, U_GC_P_MASK) && is_older_than(c, 8, 0)) || c == 0x166D || c == 0x111C9;
}

bool is_word_character(char32_t c) {
  return u_isUAlphabetic(static_cast<UChar32>(c)) != 0 || in_categories(c, U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK) ||
         u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_JOIN_CONTROL) != 0;
}

bool is_mark(char32_t c) {
  return (in_categories(c, U_GC_M_MASK) && is_older_than(c, 9, 0) && c != 0x111C9) || c == 0x1CF2 || c == 0x1CF3;
}

bool is_nonspacing_mark(char32_t c) {
  const bool other = c == 0x1885 || c == 0x1886 || c == 0xA9BD || c == 0x111C9;
  return (in_categories(c, U_GC_MN_MASK) && is_older_than(c, 8, 0) && !other) || c == 0x1734;
}

bool is_control(char32_t c) {
  return in_categories(c, U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK) && is_older_than(c, 8, 0);
}

void append_lower(std::string& text, char32_t c) {
  if (c == 0x130) return void(text += "i\xCC\x87");  // the only one whose lower case is two characters
  append_utf8(text, static_cast<char32_t>(u_tolower(static_cast<UChar32>(c))));
}

void normalize(NormalForm form, std::string& text) {
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80U; })) return;
  std::string normal;
  normal.reserve(text.size());
  icu::StringByteSink<std::string> sink(&normal);
  for (std::size_t at = 0, end = 0; at < text.size(); at = end) {
    end = piece_end(text, at);
    UErrorCode status = U_ZERO_ERROR;
    normalizer_of(form).normalizeUTF8(0, piece_of(std::string_view(text).substr(at, end - at)), sink, nullptr, status);
    check_icu(status, "normalizeUTF8");
  }
  text = std::move(normal);
}

bool is_normal(NormalForm form, std::string_view text) {
  for (std::size_t at = 0, end = 0; at < text.size(); at = end) {
    end = piece_end(text, at);
    UErrorCode status = U_ZERO_ERROR;
    const bool normal = normalizer_of(form).isNormalizedUTF8(piece_of(text.substr(at, end - at)), status) != 0;
    check_icu(status, "isNormalizedUTF8");
    if (!normal) return false;
  }
  return true;
}

void for_each_grapheme(std::string_view text, const std::function<void(std::string_view)>& take) {
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> breaks(
      icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
  check_icu(status, "createCharacterInstance");
  for (std::size_t at = 0, end = 0; at < text.size(); at = end) {
    end = piece_end(text, at);
    const std::string_view piece = text.substr(at, end - at);
    UText* const opened = utext_openUTF8(nullptr, piece.data(), static_cast<std::int64_t>(piece.size()), &status);
    check_icu(status, "utext_openUTF8");
    const std::unique_ptr<UText, decltype(&utext_close)> closing(opened, &utext_close);
    breaks->setText(opened, status);
    check_icu(status, "setText");
    for (std::int32_t from = 0, to = breaks->next(); to != icu::BreakIterator::DONE; to = breaks->next()) {
      take(piece.substr(from, to - from));
      from = to;
    }
  }
}

char32_t next_character(std::string_view text, std::size_t& at) {
  UChar32 c = 0;
  U8_NEXT_UNSAFE(text.data(), at, c);
  return static_cast<char32_t>(c);
}

char32_t character_before(std::string_view text, std::size_t at) {
  UChar32 c = 0;
  U8_PREV_UNSAFE(text.data(), at, c);
  return static_cast<char32_t>(c);
}

void append_utf8(std::string& text, char32_t c) {
  std::array<char, 4> bytes{};
  std::size_t count = 0;
  U8_APPEND_UNSAFE(bytes.data(), count, static_cast<UChar32>(c));
  text.append(bytes.data(), count);
}

}  // namespace lockstep::data
