// Shell patterns for names (not paths): `*`, `?`, `[abc]`.
#pragma once

#include <fnmatch.h>

#include <string>
#include <vector>

namespace lockstep {

[[nodiscard]] inline bool matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

[[nodiscard]] inline bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  for (const auto& pattern : patterns) {
    if (matches(pattern, name)) return true;
  }
  return false;
}

}  // namespace lockstep
