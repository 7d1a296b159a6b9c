#include "cli/confusion_picture.hpp"

#include <algorithm>
#include <string>

#include "data/contact_sheet.hpp"

namespace lockstep::cli {

namespace {

constexpr std::int64_t kSide = 640;                   // about, of all cells
constexpr std::int64_t kSmallest = 3, kLargest = 40;  // cells
constexpr std::int64_t kLetters = 10;                 // of a name
constexpr std::uint8_t kPaper = 255;

}  // namespace

data::Picture confusion_picture(const EvaluationDetails& details) {
  const std::int64_t classes = std::ssize(details.rows);
  const std::int64_t cell = std::clamp(kSide / std::max<std::int64_t>(1, classes), kSmallest, kLargest);
  const bool named = cell > data::kGlyphHeight;
  const std::int64_t left = named ? kLetters * (data::kGlyphWidth + 1) + 2 : 0;
  data::Picture picture(classes * cell, left + classes * cell, kPaper);
  for (std::int64_t k = 0; named && k < classes; ++k) {
    const std::string name = details.rows[k].name.substr(0, kLetters);
    data::write_text(picture, name, k * cell + (cell - data::kGlyphHeight) / 2, 0);
  }
  for (const Confusion& pair : details.confusions) {
    const std::int64_t of = details.rows[pair.actual].samples;
    const double share = static_cast<double>(pair.samples) / of;
    const auto faded = [&](int color) { return static_cast<std::uint8_t>(kPaper - share * (kPaper - color)); };
    const bool right = pair.actual == pair.predicted;
    for (std::int64_t y = 0; y < cell - 1; ++y) {
      for (std::int64_t x = 0; x < cell - 1; ++x) {
        picture.set(pair.actual * cell + y, left + pair.predicted * cell + x, faded(right ? 47 : 217),
                    faded(right ? 111 : 84), faded(right ? 222 : 43));
      }
    }
  }
  return picture;
}

}  // namespace lockstep::cli
