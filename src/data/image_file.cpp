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

void check_end(std::span<const std::byte> head, std::span<const std::byte> tail) {
  static constexpr std::array<unsigned char, 2> kEndOfImage{0xFF, 0xD9};
  static constexpr std::array<unsigned char, 4> kEndChunk{'I', 'E', 'N', 'D'};
  if (is_jpeg(head) && !contains(tail, kEndOfImage)) {
    throw Error(ExitCode::data, "truncated JPEG (no end-of-image marker)");
  }
  if (is_png(head) && !contains(tail, kEndChunk)) throw Error(ExitCode::data, "truncated PNG (no IEND chunk)");
}

}  // namespace lockstep::data
