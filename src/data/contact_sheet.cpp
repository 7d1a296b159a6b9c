#include "data/contact_sheet.hpp"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <vector>

#include "data/contact_sheet_font.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

constexpr std::int64_t kGap = 4;
constexpr std::uint8_t kPaper = 250, kInk = 20;

/// RGB, row by row.
class Sheet {
 public:
  Sheet(std::int64_t height, std::int64_t width)
      : height_(height), width_(width), pixels_(static_cast<std::size_t>(height * width * 3), kPaper) {}

  void set(std::int64_t y, std::int64_t x, std::uint8_t red, std::uint8_t green, std::uint8_t blue) {
    if (y < 0 || x < 0 || y >= height_ || x >= width_) return;
    std::uint8_t* pixel = &pixels_[static_cast<std::size_t>((y * width_ + x) * 3)];
    pixel[0] = red, pixel[1] = green, pixel[2] = blue;
  }

  void draw(const ImageView& image, std::int64_t top, std::int64_t left, std::int64_t zoom) {
    const std::int64_t green = image.channels >= 3 ? 1 : 0, blue = image.channels >= 3 ? 2 : 0;
    for (std::int64_t y = 0; y < image.height * zoom; ++y) {
      for (std::int64_t x = 0; x < image.width * zoom; ++x) {
        const std::uint8_t* pixel = image.row(y / zoom) + x / zoom * image.channels;
        set(top + y, left + x, pixel[0], pixel[green], pixel[blue]);
      }
    }
  }

  void write(const std::string& text, std::int64_t top, std::int64_t left) {
    for (const char character : text) {
      for (std::int64_t y = 0; y < kGlyphHeight; ++y) {
        for (std::int64_t x = 0; x < kGlyphWidth; ++x) {
          if (glyph_dot(character, y, x)) set(top + y, left + x, kInk, kInk, kInk);
        }
      }
      left += kGlyphWidth + 1;
    }
  }

  void save(const std::string& path) const {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(width_);
    image.height = static_cast<png_uint_32>(height_);
    image.format = PNG_FORMAT_RGB;
    if (png_image_write_to_file(&image, path.c_str(), 0, pixels_.data(), 0, nullptr) == 0) {
      throw Error(ExitCode::cannot_create, fmt::format("{}: cannot write the picture: {}", path, image.message));
    }
  }

 private:
  std::int64_t height_, width_;
  std::vector<std::uint8_t> pixels_;
};

/// Where things are in a cell; all cells are alike.
struct Layout {
  std::vector<std::size_t> images;  ///< which outputs of the pipeline
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

/// The class's name, or its number, or the sample's name; no longer than the cell is wide.
std::string caption(const DataSet& set, std::int64_t id, std::int64_t width) {
  const std::int64_t label = set.label(id);
  const auto& names = set.info().class_names;
  std::string text = label < 0 ? set.name(id) : std::to_string(label);
  if (label >= 0 && label < static_cast<std::int64_t>(names.size())) text = names[static_cast<std::size_t>(label)];
  text.resize(std::min<std::size_t>(text.size(), static_cast<std::size_t>(width / (kGlyphWidth + 1))));
  return text;
}

}  // namespace

void write_contact_sheet(const std::string& path, const DataSet& set, const Pipeline& pipeline,
                         const ContactSheetOptions& options) {
  const Layout layout = make_layout(set, pipeline, options);
  const std::int64_t shown = std::min(set.size(), options.columns * options.rows);
  const std::int64_t columns = std::min(shown, options.columns), rows = (shown + columns - 1) / columns;
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
  sheet.save(path);
}

}  // namespace lockstep::data
