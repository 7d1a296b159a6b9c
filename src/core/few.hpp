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
  return fmt::format("{}{}", fmt::join(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(named), between),
                     others == 0 ? "" : fmt::format("{} and {} more", between == ", " ? "" : ";", others));
}

}  // namespace lockstep
