// What the header of an encoded image says.
#pragma once

#include <cstdint>

namespace lockstep::data {

struct ImageSize {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;  ///< 1 (grey) or 3 (RGB)
  bool operator==(const ImageSize&) const = default;
};

/// Larger images are refused, so that a damaged or hostile header cannot ask for all memory.
inline constexpr std::int64_t kMaxPixels = std::int64_t{1} << 28;

}  // namespace lockstep::data
