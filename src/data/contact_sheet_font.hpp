// A small bitmap font for labels under pictures: capitals, digits and a few signs, 5 x 7 dots.
#pragma once

#include <cstdint>

namespace lockstep::data {

inline constexpr std::int64_t kGlyphWidth = 5, kGlyphHeight = 7;

/// Whether the dot (y, x) of a character is set. Small letters look like capitals; what the font lacks is a box.
[[nodiscard]] bool glyph_dot(char character, std::int64_t y, std::int64_t x);

}  // namespace lockstep::data
