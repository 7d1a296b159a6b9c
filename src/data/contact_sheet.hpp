// A picture of a data set: a grid of samples after the steps, with the names of their labels, to show what the network
// sees.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/augment.hpp"
#include "data/picture.hpp"
#include "lockstep/data_set.hpp"

namespace lockstep::data {

// A small bitmap font for captions: capitals, digits and some signs, 5 x 7 dots.

inline constexpr std::int64_t kGlyphWidth = 5, kGlyphHeight = 7;

/// Whether the dot (y, x) of a character is set. Lower-case letters look like capitals; unknown characters are a box.
[[nodiscard]] bool glyph_dot(char character, std::int64_t y, std::int64_t x);

/// Writes dark letters, a column of paper behind each; (top, left) is the first one's corner.
void write_text(Picture& picture, std::string_view text, std::int64_t top, std::int64_t left);

struct ContactSheetOptions {
  std::int64_t columns = 10;
  std::int64_t rows = 8;
  std::int64_t cell = 64;   ///< small images are enlarged, by an integer factor, to about this many pixels
  std::uint64_t epoch = 0;  ///< the epoch whose random draws are used
};

/// Samples evenly spaced over the set, in order of ids; several images of a sample are side by side. Throws Error(data)
/// if the samples have no image.
[[nodiscard]] Picture contact_sheet(const DataSet& set, const Pipeline& pipeline,
                                    const ContactSheetOptions& options = {});

/// The same as a PNG file. Also throws Error(cannot_create) if it cannot be written.
void write_contact_sheet(const std::string& path, const DataSet& set, const Pipeline& pipeline,
                         const ContactSheetOptions& options = {});

}  // namespace lockstep::data
