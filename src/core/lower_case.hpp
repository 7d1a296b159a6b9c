#pragma once

#include <algorithm>
#include <cctype>
#include <string>

namespace lockstep {

/// `text` with the letters A to Z in lower case; bytes of other letters stay as they are.
inline std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace lockstep
