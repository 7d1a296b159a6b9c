// Numbers in text, always with a decimal point. strtod() and its relatives read "0.4" as 0 where a program around this
// library has chosen a locale with a decimal comma.
#pragma once

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace lockstep {

/// The number that the text begins with; `end`, if given, gets what follows. As strtod() does, too small a number is
/// 0 and too large a one infinite. Unlike strtod(), it skips no spaces.
template <class T>
[[nodiscard]] std::optional<T> leading_number(std::string_view text, std::string_view* end = nullptr) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  T value{};
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != nullptr) *end = text.substr(static_cast<std::size_t>(at - text.data()));
  if (error == std::errc::invalid_argument) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    if (error == std::errc::result_out_of_range) {
      const std::string_view number(text.data(), static_cast<std::size_t>(at - text.data()));
      const auto exponent = number.find_first_of("eE");
      const bool tiny = (exponent != std::string_view::npos && number.substr(exponent + 1).starts_with('-')) ||
                        (exponent == std::string_view::npos && number.find('.') != std::string_view::npos &&
                         number.find_first_of("123456789") > number.find('.'));
      return std::copysign(tiny ? T{0} : std::numeric_limits<T>::infinity(), number.starts_with('-') ? T{-1} : T{1});
    }
  } else if (error != std::errc{}) {
    return std::nullopt;
  }
  return value;
}

/// The whole text as a number.
template <class T>
[[nodiscard]] std::optional<T> number_from(std::string_view text) {
  std::string_view rest;
  const auto value = leading_number<T>(text, &rest);
  return rest.empty() ? value : std::nullopt;
}

}  // namespace lockstep
