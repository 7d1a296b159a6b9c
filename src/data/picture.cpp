#include "data/picture.hpp"

#include <fmt/format.h>
#include <png.h>

#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

png_image image_of(std::int64_t height, std::int64_t width, png_uint_32 format) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = format;
  return image;
}

/// `colors`: of an image with a palette, else null.
std::string written(png_image image, const std::vector<std::uint8_t>& pixels, const png_color* colors) {
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.data(), 0, colors) == 0) {
    throw Error(ExitCode::internal, fmt::format("a picture of {} x {} pixels cannot be written as PNG: {}", image.width,
                                                image.height, image.message));
  }
  bytes.resize(size);
  return bytes;
}

/// The number's bits in turn are the upper bits of red, green and blue, so that neighbours differ much.
png_color color_of(unsigned number) {
  unsigned rgb[3] = {};  // NOLINT(*-avoid-c-arrays)
  for (unsigned bit = 0; bit < 8; ++bit) rgb[bit % 3] |= (number >> bit & 1U) << (7 - bit / 3);
  return {static_cast<png_byte>(rgb[0]), static_cast<png_byte>(rgb[1]), static_cast<png_byte>(rgb[2])};
}

}  // namespace

std::string png_of(const Picture& picture) {
  return written(image_of(picture.height, picture.width, PNG_FORMAT_RGB), picture.pixels, nullptr);
}

std::string mask_png(const std::vector<std::uint8_t>& classes, std::int64_t height, std::int64_t width) {
  std::vector<png_color> colors;
  for (unsigned number = 0; number < 256; ++number) colors.push_back(color_of(number));
  png_image image = image_of(height, width, PNG_FORMAT_RGB_COLORMAP);
  image.colormap_entries = 256;
  return written(image, classes, colors.data());
}

}  // namespace lockstep::data
