// White space beside a place in UTF-8 text, as Unicode's property White_Space has it.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace lockstep::data {

inline constexpr std::array<std::string_view, 25> kWhiteSpace = {
    "\t",           "\n",           "\v",           "\f",           "\r",           " ",
    "\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x81", "\xE2\x80\x82",
    "\xE2\x80\x83", "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86", "\xE2\x80\x87", "\xE2\x80\x88",
    "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\xA8", "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F",
    "\xE3\x80\x80"};

/// Where the white space begins that ends at `at`, but not before `from`.
[[nodiscard]] inline std::size_t white_space_before(std::string_view text, std::size_t from, std::size_t at) {
  for (bool more = true; more;) {
    more = false;
    for (const std::string_view space : kWhiteSpace) {
      if (!text.substr(from, at - from).ends_with(space)) continue;
      at -= space.size();
      more = true;
    }
  }
  return at;
}

/// Where the white space ends that begins at `at`.
[[nodiscard]] inline std::size_t white_space_after(std::string_view text, std::size_t at) {
  for (bool more = true; more;) {
    more = false;
    for (const std::string_view space : kWhiteSpace) {
      if (!text.substr(at).starts_with(space)) continue;
      at += space.size();
      more = true;
    }
  }
  return at;
}

}  // namespace lockstep::data
