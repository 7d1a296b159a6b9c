// Lists in messages: all of a few words, the first of many.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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

}  // namespace lockstep
