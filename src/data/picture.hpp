// A picture in memory, and as PNG.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::data {

/// RGB, 8 bits each, row by row.
struct Picture {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> pixels;

  /// A uniform grey.
  Picture(std::int64_t rows, std::int64_t columns, std::uint8_t gray)
      : height(rows), width(columns), pixels(rows * columns * 3, gray) {}

  /// Ignored outside the picture.
  void set(std::int64_t y, std::int64_t x, std::uint8_t red, std::uint8_t green, std::uint8_t blue) {
    if (y < 0 || x < 0 || y >= height || x >= width) return;
    std::uint8_t* pixel = &pixels[(y * width + x) * 3];
    pixel[0] = red, pixel[1] = green, pixel[2] = blue;
  }
};

/// A PNG file with a palette: a pixel has the number of its class [height, width]. The colors are those by which the
/// VOC challenge shows its classes (Everingham and others, 2010): class 0 is black.
[[nodiscard]] std::string mask_png(const std::vector<std::uint8_t>& classes, std::int64_t height, std::int64_t width);

/// The bytes of a PNG file.
[[nodiscard]] std::string png_of(const Picture& picture);

}  // namespace lockstep::data
