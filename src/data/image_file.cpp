#include "data/image_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

[[noreturn]] void refuse(std::span<const std::byte> bytes) {
  if (bytes.empty()) throw Error(ExitCode::data, "the file is empty");
  std::string begin;
  for (const auto byte : bytes.first(std::min<std::size_t>(bytes.size(), 4))) {
    begin += fmt::format("{}{:02x}", begin.empty() ? "" : " ", static_cast<unsigned>(byte));
  }
  throw Error(ExitCode::data, fmt::format("not a JPEG or PNG file (begins with {})", begin));
}

bool contains(std::span<const std::byte> bytes, std::span<const unsigned char> marker) {
  return std::search(bytes.begin(), bytes.end(), marker.begin(), marker.end(),
                     [](std::byte a, unsigned char b) { return a == std::byte{b}; }) != bytes.end();
}

}  // namespace

ImageHeader image_header(std::span<const std::byte> bytes) {
  if (is_jpeg(bytes)) return jpeg_header(bytes);
  if (is_png(bytes)) return png_header(bytes);
  refuse(bytes);
}

void decode_image(std::span<const std::byte> bytes, std::int64_t channels, Tensor& out) {
  if (is_jpeg(bytes)) return decode_jpeg(bytes, channels, out);
  if (is_png(bytes)) return decode_png(bytes, channels, out);
  refuse(bytes);
}

bool has_end(std::span<const std::byte> head, std::span<const std::byte> tail) {
  static constexpr std::array<unsigned char, 2> kEndOfImage{0xFF, 0xD9};
  static constexpr std::array<unsigned char, 4> kEndChunk{'I', 'E', 'N', 'D'};
  return is_jpeg(head) ? contains(tail, kEndOfImage) : contains(tail, kEndChunk);
}

std::string orientation_warning(std::size_t turned, std::size_t images) {
  if (turned == 0) return "";
  return fmt::format(
      "{} of {} images {} an Exif orientation, which is not applied: they are read as they are stored, as "
      "torchvision reads them",
      turned, images, turned == 1 ? "has" : "have");
}

// Entries of 12 bytes: tag, type, count, value. Orientation is tag 0x112, of type 3, a 16-bit number.
bool is_turned_by(std::span<const std::byte> exif) {
  const bool little = exif.size() >= 8 && exif[0] == std::byte{'I'};
  const auto number = [&](std::size_t at, std::size_t bytes) {
    std::size_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value = value << 8 | std::to_integer<std::size_t>(exif[at + (little ? bytes - 1 - i : i)]);
    return value;
  };
  if (exif.size() < 8) return false;
  const std::size_t directory = number(4, 4);
  if (directory > exif.size() - 2) return false;
  const std::size_t entries = std::min(number(directory, 2), (exif.size() - directory - 2) / 12);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t at = directory + 2 + 12 * i;
    if (number(at, 2) == 0x112 && number(at + 2, 2) == 3) return number(at + 8, 2) >= 2 && number(at + 8, 2) <= 8;
  }
  return false;
}

}  // namespace lockstep::data
