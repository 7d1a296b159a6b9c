// Words, lists and lines of text, in messages and files.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// "cat, dog and 7 more", or "bad.png: truncated; worse.png: empty; and 7 more".
[[nodiscard]] inline std::string few_of(const std::vector<std::string>& words, std::size_t most = 3,
                                        std::string_view between = ", ") {
  const std::size_t named = std::min(words.size(), most), others = words.size() - named;
  return fmt::format("{}{}", fmt::join(words.begin(), words.begin() + named, between),
                     others == 0 ? "" : fmt::format("{} and {} more", between == ", " ? "" : ";", others));
}

/// Of two lists that differ: "a, b, found b, a"; of longer ones the first place where they do: "a, b, c and 97 more, of
/// which number 12 is x, found y".
[[nodiscard]] inline std::string both_of(const std::vector<std::string>& expected,
                                         const std::vector<std::string>& found, std::size_t most = 10) {
  if (expected.size() <= most && found.size() <= most) {
    return fmt::format("{}, found {}", fmt::join(expected, ", "), fmt::join(found, ", "));
  }
  const auto [one, other] = std::mismatch(expected.begin(), expected.end(), found.begin(), found.end());
  return fmt::format("{}, of which number {} is {}, found {}", few_of(expected), one - expected.begin() + 1,
                     one == expected.end() ? "not there" : *one, other == found.end() ? "nothing" : *other);
}

/// `text` with the letters A to Z in lower case; bytes of other letters stay as they are.
inline std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// Lines of CSV as RFC 4180 has them: fields are quoted where they must be.

[[nodiscard]] inline std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

/// With its end of line.
[[nodiscard]] inline std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (std::size_t i = 0; i < fields.size(); ++i) line += (i > 0 ? "," : "") + csv_field(fields[i]);
  return line + "\n";
}

// Shell patterns for names (not paths): `*`, `?`, `[abc]`.

[[nodiscard]] inline bool matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

[[nodiscard]] inline bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  for (const auto& pattern : patterns) {
    if (matches(pattern, name)) return true;
  }
  return false;
}

/// 1500 -> "1.5 kB"
[[nodiscard]] inline std::string byte_count(double bytes) {
  constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < kUnits.size(); ++unit) bytes /= 1000;
  return fmt::format("{:.3g} {}", bytes, kUnits.at(unit));
}

}  // namespace lockstep
