#include "data/contact_sheet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "core/errno_code.hpp"
#include "core/round_up.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

struct Glyph {
  char character;
  const char* rows;  ///< seven rows of five dots, separated by blanks
};

// clang-format off
constexpr std::array<Glyph, 53> kFont{{
    {'A', ".###. #...# #...# ##### #...# #...# #...#"},
    {'B', "####. #...# #...# ####. #...# #...# ####."},
    {'C', ".#### #.... #.... #.... #.... #.... .####"},
    {'D', "###.. #..#. #...# #...# #...# #..#. ###.."},
    {'E', "##### #.... #.... ####. #.... #.... #####"},
    {'F', "##### #.... #.... ####. #.... #.... #...."},
    {'G', ".#### #.... #.... #..## #...# #...# .####"},
    {'H', "#...# #...# #...# ##### #...# #...# #...#"},
    {'I', ".###. ..#.. ..#.. ..#.. ..#.. ..#.. .###."},
    {'J', "..### ...#. ...#. ...#. ...#. #..#. .##.."},
    {'K', "#...# #..#. #.#.. ##... #.#.. #..#. #...#"},
    {'L', "#.... #.... #.... #.... #.... #.... #####"},
    {'M', "#...# ##.## #.#.# #.#.# #...# #...# #...#"},
    {'N', "#...# ##..# ##..# #.#.# #..## #..## #...#"},
    {'O', ".###. #...# #...# #...# #...# #...# .###."},
    {'P', "####. #...# #...# ####. #.... #.... #...."},
    {'Q', ".###. #...# #...# #...# #.#.# #..#. .##.#"},
    {'R', "####. #...# #...# ####. #.#.. #..#. #...#"},
    {'S', ".#### #.... #.... .###. ....# ....# ####."},
    {'T', "##### ..#.. ..#.. ..#.. ..#.. ..#.. ..#.."},
    {'U', "#...# #...# #...# #...# #...# #...# .###."},
    {'V', "#...# #...# #...# .#.#. .#.#. ..#.. ..#.."},
    {'W', "#...# #...# #...# #.#.# #.#.# ##.## #...#"},
    {'X', "#...# #...# .#.#. ..#.. .#.#. #...# #...#"},
    {'Y', "#...# #...# .#.#. ..#.. ..#.. ..#.. ..#.."},
    {'Z', "##### ....# ...#. ..#.. .#... #.... #####"},
    {'0', ".###. #...# #..## #.#.# ##..# #...# .###."},
    {'1', "..#.. .##.. ..#.. ..#.. ..#.. ..#.. .###."},
    {'2', ".###. #...# ....# ..##. .#... #.... #####"},
    {'3', "####. ....# ....# .###. ....# ....# ####."},
    {'4', "#..#. #..#. #..#. ##### ...#. ...#. ...#."},
    {'5', "##### #.... ####. ....# ....# #...# .###."},
    {'6', ".###. #.... #.... ####. #...# #...# .###."},
    {'7', "##### ....# ....# ...#. ..#.. ..#.. ..#.."},
    {'8', ".###. #...# #...# .###. #...# #...# .###."},
    {'9', ".###. #...# #...# .#### ....# ....# .###."},
    {' ', "..... ..... ..... ..... ..... ..... ....."},
    {'-', "..... ..... ..... .###. ..... ..... ....."},
    {'_', "..... ..... ..... ..... ..... ..... #####"},
    {'.', "..... ..... ..... ..... ..... .##.. .##.."},
    {',', "..... ..... ..... ..... .##.. ..#.. .#..."},
    {':', "..... .##.. .##.. ..... .##.. .##.. ....."},
    {'/', "....# ...#. ...#. ..#.. .#... .#... #...."},
    {'+', "..... ..#.. ..#.. ##### ..#.. ..#.. ....."},
    {'=', "..... ..... ##### ..... ##### ..... ....."},
    {'(', "...#. ..#.. .#... .#... .#... ..#.. ...#."},
    {')', ".#... ..#.. ...#. ...#. ...#. ..#.. .#..."},
    {'#', ".#.#. .#.#. ##### .#.#. ##### .#.#. .#.#."},
    {'\'', "..#.. ..#.. .#... ..... ..... ..... ....."},
    {'!', "..#.. ..#.. ..#.. ..#.. ..#.. ..... ..#.."},
    {'?', ".###. #...# ....# ...#. ..#.. ..... ..#.."},
    {'%', "##..# ##..# ...#. ..#.. .#... #..## #..##"},
    {'&', ".##.. #..#. #.#.. .#... #.#.# #..#. .##.#"},
}};
// clang-format on

constexpr Glyph kBox{'\0', "##### #...# #...# #...# #...# #...# #####"};

const Glyph& glyph_of(char character) {
  const char capital = std::toupper(static_cast<unsigned char>(character));
  for (const Glyph& glyph : kFont) {
    if (glyph.character == capital) return glyph;
  }
  return kBox;
}

}  // namespace

bool glyph_dot(char character, std::int64_t y, std::int64_t x) {
  return glyph_of(character).rows[y * (kGlyphWidth + 1) + x] == '#';
}

void write_text(Picture& picture, std::string_view text, std::int64_t top, std::int64_t left) {
  constexpr std::uint8_t kInk = 20;
  for (const char character : text) {
    for (std::int64_t y = 0; y < kGlyphHeight; ++y) {
      for (std::int64_t x = 0; x < kGlyphWidth; ++x) {
        if (glyph_dot(character, y, x)) picture.set(top + y, left + x, kInk, kInk, kInk);
      }
    }
    left += kGlyphWidth + 1;
  }
}

namespace {

constexpr std::int64_t kGap = 4;
constexpr std::uint8_t kPaper = 250;

/// A picture, and drawing on it.
class Sheet {
 public:
  Sheet(std::int64_t height, std::int64_t width) : picture_(height, width, kPaper) {}

  void draw(const ImageView& image, std::int64_t top, std::int64_t left, std::int64_t zoom) {
    const std::int64_t green = image.channels >= 3 ? 1 : 0, blue = image.channels >= 3 ? 2 : 0;
    for (std::int64_t y = 0; y < image.height * zoom; ++y) {
      for (std::int64_t x = 0; x < image.width * zoom; ++x) {
        const std::uint8_t* pixel = image.row(y / zoom) + x / zoom * image.channels;
        picture_.set(top + y, left + x, pixel[0], pixel[green], pixel[blue]);
      }
    }
  }

  void write(const std::string& text, std::int64_t top, std::int64_t left) { write_text(picture_, text, top, left); }

  const Picture& picture() const { return picture_; }

 private:
  Picture picture_;
};

/// Positions within a cell; the same for all cells.
struct Layout {
  std::vector<std::size_t> images;  ///< indices of the image outputs of the pipeline
  std::int64_t zoom = 1, image_height = 0, cell_height = 0, cell_width = 0;
};

Layout make_layout(const DataSet& set, const Pipeline& pipeline, const ContactSheetOptions& options) {
  Layout layout;
  std::int64_t height = 0, width = 0;
  for (std::size_t i = 0; i < pipeline.outputs().size(); ++i) {
    const Feature& feature = pipeline.outputs()[i];
    if (feature.kind != Feature::Kind::image) continue;
    layout.images.push_back(i);
    height = std::max(height, feature.spec.shape[0]);
    width += feature.spec.shape[1] + (layout.images.size() > 1 ? 1 : 0);
  }
  if (layout.images.empty()) {
    throw Error(ExitCode::data,
                fmt::format("{}: expected samples with images for a picture, found none", set.info().source));
  }
  layout.zoom = std::max<std::int64_t>(1, options.cell / std::max(height, width));
  layout.image_height = height * layout.zoom;
  layout.cell_height = layout.image_height + kGlyphHeight + 2 * kGap;
  layout.cell_width = width * layout.zoom + kGap;
  return layout;
}

/// The class's name, or its number, or the sample's name; cut to the width of the cell.
std::string caption(const DataSet& set, std::int64_t id, std::int64_t width) {
  const std::int64_t label = set.label(id);
  const auto& names = set.info().class_names;
  std::string text = label < 0 ? set.name(id) : std::to_string(label);
  if (label >= 0 && label < static_cast<std::int64_t>(names.size())) text = names[label];
  text.resize(std::min<std::size_t>(text.size(), static_cast<std::size_t>(width / (kGlyphWidth + 1))));
  return text;
}

}  // namespace

Picture contact_sheet(const DataSet& set, const Pipeline& pipeline, const ContactSheetOptions& options) {
  const Layout layout = make_layout(set, pipeline, options);
  const std::int64_t shown = std::min(set.size(), options.columns * options.rows);
  const std::int64_t columns = std::min(shown, options.columns), rows = divide_up(shown, columns);
  Sheet sheet(rows * layout.cell_height + kGap, columns * layout.cell_width + kGap);
  Sample sample;
  PipelineScratch scratch;
  for (std::int64_t i = 0; i < shown; ++i) {
    const std::int64_t id = i * set.size() / shown;
    const std::int64_t top = i / columns * layout.cell_height + kGap, left = i % columns * layout.cell_width + kGap;
    set.read(id, sample);
    std::int64_t x = left;
    for (const std::size_t index : layout.images) {
      pipeline.augment(sample[index].tensor, index, id, options.epoch, scratch);
      sheet.draw(scratch.image.view(), top, x, layout.zoom);
      x += (scratch.image.width() + 1) * layout.zoom;
    }
    sheet.write(caption(set, id, layout.cell_width), top + layout.image_height + kGap / 2, left);
  }
  return sheet.picture();
}

void write_contact_sheet(const std::string& path, const DataSet& set, const Pipeline& pipeline,
                         const ContactSheetOptions& options) {
  const std::string bytes = png_of(contact_sheet(set, pipeline, options));
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file.write(bytes.data(), bytes.size()).flush()) {
    const int error = errno;
    throw Error(code_of_errno(error, ExitCode::cannot_create),
                fmt::format("{}: cannot write the picture: {}", path, std::strerror(error)));
  }
}

}  // namespace lockstep::data
