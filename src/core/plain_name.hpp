// Names that come from elsewhere: keys of object stores, files that a manifest or an index of weights lists, the name
// of the best checkpoint. Whatever is joined to a path here must be one of these.
#pragma once

#include <string_view>

namespace lockstep {

/// Whether it is one component of a path, so that it cannot lead out of its folder.
[[nodiscard]] constexpr bool is_plain_name(std::string_view name) {
  constexpr std::size_t kLongest = 255;  // bytes, as file systems have it
  return !name.empty() && name.size() <= kLongest && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

}  // namespace lockstep
