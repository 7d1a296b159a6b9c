#include "data/image_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <string>
#include <vector>

#include "data/readers/prepare.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

/// Like libjpeg, libpng reports errors through a callback that must not return (see jpeg.cpp).
struct PngDecoder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::jmp_buf escape{};
  char message[256] = {};
  std::span<const std::byte> rest;
  bool truncated = false;

  explicit PngDecoder(std::span<const std::byte> bytes);
  ~PngDecoder() { png_destroy_read_struct(&png, &info, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;
};

[[noreturn]] void on_error(png_structp png, png_const_charp text) {
  auto& decoder = *static_cast<PngDecoder*>(png_get_error_ptr(png));
  std::strncpy(decoder.message, text, sizeof(decoder.message) - 1);
  std::longjmp(decoder.escape, 1);
}

void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep out, std::size_t length) {
  auto& decoder = *static_cast<PngDecoder*>(png_get_io_ptr(png));
  if (decoder.rest.size() < length) {
    decoder.truncated = true;
    png_error(png, "ends too early");
  }
  std::memcpy(out, decoder.rest.data(), length);
  decoder.rest = decoder.rest.subspan(length);
}

PngDecoder::PngDecoder(std::span<const std::byte> bytes) : rest(bytes) {
  if (!is_png(bytes)) throw Error(ExitCode::data, "not a PNG file");
  png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
  info = png != nullptr ? png_create_info_struct(png) : nullptr;
  if (info == nullptr) {
    png_destroy_read_struct(&png, &info, nullptr);
    throw Error(ExitCode::infrastructure, "libpng: out of memory, or another version than this was built with");
  }
  png_set_read_fn(png, this, on_read);
}

template <class Body>
void guarded_png(PngDecoder& decoder, Body body) {
  if (setjmp(decoder.escape) != 0) {
    throw Error(ExitCode::data,
                decoder.truncated ? std::string("truncated PNG") : fmt::format("damaged PNG ({})", decoder.message));
  }
  body();
}

ImageHeader read_png_header(PngDecoder& decoder) {
  guarded_png(decoder, [&decoder] { png_read_info(decoder.png, decoder.info); });
  const ImageSize size{png_get_image_height(decoder.png, decoder.info), png_get_image_width(decoder.png, decoder.info)};
  if (size.height * size.width > kMaxPixels) {
    throw Error(ExitCode::data,
                fmt::format("PNG of {} x {} pixels: expected at most {}", size.width, size.height, kMaxPixels));
  }
  png_uint_32 exif_bytes = 0;
  png_bytep exif = nullptr;
  png_get_eXIf_1(decoder.png, decoder.info, &exif_bytes, &exif);
  return {size, (png_get_color_type(decoder.png, decoder.info) & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1,
          png_get_bit_depth(decoder.png, decoder.info) > 8,
          exif != nullptr && is_turned_by(std::as_bytes(std::span(exif, exif_bytes)))};
}

/// Makes libpng return 8 bits per channel, without alpha.
void set_conversions(png_structp png, png_infop info, bool to_rgb) {
  const int color_type = png_get_color_type(png, info);
  if (color_type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (color_type == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png);
  png_set_scale_16(png);
  png_set_strip_alpha(png);
  if (to_rgb) png_set_gray_to_rgb(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
}

}  // namespace

bool is_png(std::span<const std::byte> bytes) {
  return bytes.size() >= 8 && png_sig_cmp(reinterpret_cast<png_const_bytep>(bytes.data()), 0, 8) == 0;
}

ImageHeader png_header(std::span<const std::byte> bytes) {
  PngDecoder decoder(bytes);
  return read_png_header(decoder);
}

void decode_png(std::span<const std::byte> bytes, std::int64_t channels, Tensor& out) {
  PngDecoder decoder(bytes);
  const ImageHeader header = read_png_header(decoder);
  if (header.channels > channels) throw Error(ExitCode::data, "a colour PNG where grey images were expected");
  const std::size_t stride = header.size.width * channels;
  prepare(out, {DType::u8, {header.size.height, header.size.width, channels}});
  std::vector<png_bytep> rows(header.size.height);
  for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = out.as<std::uint8_t>().data() + y * stride;
  guarded_png(decoder, [&] {
    set_conversions(decoder.png, decoder.info, channels == 3 && header.channels == 1);
    if (png_get_rowbytes(decoder.png, decoder.info) != stride) png_error(decoder.png, "unexpected row length");
    png_read_image(decoder.png, rows.data());
    png_read_end(decoder.png, nullptr);
  });
}

MaskCode::MaskCode(std::size_t classes, const std::vector<std::int64_t>& values, std::int64_t ignored)
    : classes_(classes), values_(values), ignored_(ignored) {
  numbers_.fill(-1);
  if (ignored >= 0) numbers_.at(ignored) = kIgnoredPixel;
  for (std::size_t i = 0; i < classes; ++i) {
    const std::int64_t value = values.empty() ? static_cast<std::int64_t>(i) : values.at(i);
    if (values.empty() && value == ignored) continue;
    numbers_.at(value) = i;
  }
  if (std::find(values.begin(), values.end(), ignored) != values.end()) ignored_ = -1;
}

std::string MaskCode::expected() const {
  const std::string of_class = values_.empty() ? fmt::format("a class, 0 to {}", classes_ - 1)
                                               : fmt::format("a class, {}", fmt::join(values_, ", "));
  if (values_.empty() && ignored_ >= 0 && ignored_ < static_cast<std::int64_t>(classes_)) {
    return fmt::format("{}, of which {} does not count", of_class, ignored_);
  }
  return ignored_ < 0 ? of_class : fmt::format("{}, or {}, which does not count", of_class, ignored_);
}

std::string MaskCode::text() const {
  return fmt::format("{} classes, values {}, ignored {}", classes_, fmt::join(values_, " "), ignored_);
}

namespace {

void note_colors(const PngDecoder& decoder, std::span<const std::uint8_t> pixels, const MaskCode& code,
                 MaskColors& colors) {
  colors.fill(-1);
  png_colorp palette = nullptr;
  int entries = 0;
  if (png_get_PLTE(decoder.png, decoder.info, &palette, &entries) == 0) return;
  for (const std::uint8_t value : pixels) {
    if (value >= entries || code.of(value) == kIgnoredPixel) continue;
    const png_color& color = palette[value];
    colors[value] = color.red << 16 | color.green << 8 | color.blue;
  }
}

}  // namespace

void decode_mask(std::span<const std::byte> bytes, const MaskCode& code, Tensor& out, MaskColors* colors) {
  if (!is_png(bytes))
    throw Error(ExitCode::data, "expected a mask as PNG, which keeps each pixel's number, found another file");
  PngDecoder decoder(bytes);
  const ImageHeader header = read_png_header(decoder);
  const int color = png_get_color_type(decoder.png, decoder.info);
  const int bits = png_get_bit_depth(decoder.png, decoder.info);
  if ((color != PNG_COLOR_TYPE_PALETTE && color != PNG_COLOR_TYPE_GRAY) || bits > 8) {
    throw Error(ExitCode::data,
                fmt::format("expected a mask with a palette or of gray, of up to 8 bits, found {} of {} bits",
                            (color & PNG_COLOR_MASK_COLOR) != 0   ? "colors"
                            : (color & PNG_COLOR_MASK_ALPHA) != 0 ? "gray with transparency"
                                                                  : "gray",
                            bits));
  }
  prepare(out, {DType::u8, {header.size.height, header.size.width, 1}});
  const auto pixels = out.as<std::uint8_t>();
  const std::size_t width = header.size.width;
  std::vector<png_bytep> rows(header.size.height);
  for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = pixels.data() + y * width;
  guarded_png(decoder, [&] {
    png_set_packing(decoder.png);  // a byte a pixel, as it is
    png_set_interlace_handling(decoder.png);
    png_read_update_info(decoder.png, decoder.info);
    if (png_get_rowbytes(decoder.png, decoder.info) != width) png_error(decoder.png, "unexpected row length");
    png_read_image(decoder.png, rows.data());
    png_read_end(decoder.png, nullptr);
  });
  if (colors != nullptr && color == PNG_COLOR_TYPE_PALETTE) note_colors(decoder, pixels, code, *colors);
  const auto none = std::find_if(pixels.begin(), pixels.end(), [&](std::uint8_t value) { return code.of(value) < 0; });
  if (none == pixels.end()) {
    for (auto& pixel : pixels) pixel = code.of(pixel);
    return;
  }
  const std::size_t at = none - pixels.begin();
  throw Error(ExitCode::data, fmt::format("expected {}, at row {}, column {}, found {}", code.expected(), at / width,
                                          at % width, *none));
}

}  // namespace lockstep::data
