// Validators for options, with our wording: what was expected, what was found.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "core/numbers.hpp"

namespace lockstep::cli {

/// One of a few words, which help lists.
[[nodiscard]] inline CLI::Validator one_of(const std::vector<std::string>& words) {
  return {[words](std::string& found) {
            for (const auto& word : words) {
              if (word == found) return std::string();
            }
            return fmt::format("expected {}, found '{}'", fmt::join(words, " or "), found);
          },
          fmt::format("{}", fmt::join(words, "|"))};
}

/// A number, not smaller than `least`.
[[nodiscard]] inline CLI::Validator at_least(double least) {
  return {[least](std::string& found) {
            const double value = number_from<double>(found).value_or(std::nan(""));
            if (value >= least) return std::string();
            return fmt::format("expected a number of at least {}, found '{}'", least, found);
          },
          fmt::format(">={}", least)};
}

/// A number above `low` and not larger than `most`.
[[nodiscard]] inline CLI::Validator above_up_to(double low, double most) {
  return {[low, most](std::string& found) {
            const double value = number_from<double>(found).value_or(std::nan(""));
            if (value > low && value <= most) return std::string();
            return fmt::format("expected a number above {} and up to {}, found '{}'", low, most, found);
          },
          fmt::format(">{} <={}", low, most)};
}

}  // namespace lockstep::cli
