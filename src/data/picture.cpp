#include "data/picture.hpp"

#include <fmt/format.h>
#include <png.h>

#include "lockstep/error.hpp"

namespace lockstep::data {

std::string png_of(const Picture& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, picture.pixels.data(), 0, nullptr) == 0) {
    throw Error(ExitCode::internal, fmt::format("a picture of {} x {} pixels cannot be written as PNG: {}",
                                                picture.width, picture.height, image.message));
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace lockstep::data
