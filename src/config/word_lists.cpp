#include "config/word_lists.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lockstep::config {

std::string or_list(const std::vector<std::string>& words) {
  if (words.size() < 2) return words.empty() ? "" : words.front();
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

std::string one_of(const std::vector<std::string>& words) {
  if (words.size() == 1) return fmt::format("'{}'", words.front());
  return fmt::format("one of {}", fmt::join(words, ", "));
}

}  // namespace lockstep::config
