// Windows over images [batch, height, width, channels] on a Grid: which pixel a tap lies on, and the other way round.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"
#include "ops/window.hpp"

namespace lockstep::ops {

/// Place of element i of images of `height` by `width` pixels and `channels`.
struct ImagePlace {
  LOCKSTEP_HOST_DEVICE ImagePlace(std::int64_t i, std::int64_t height, std::int64_t width, std::int64_t channels)
      : channel(i % channels),
        column(i / channels % width),
        row(i / channels / width % height),
        sample(i / channels / width / height) {}
  std::int64_t channel, column, row, sample;
};

/// The pixel of an axis under a tap of window `index`; it may lie outside of the image.
LOCKSTEP_HOST_DEVICE inline std::int64_t pixel_under(const WindowAxis& axis, std::int64_t index, std::int64_t tap) {
  return index * axis.stride - axis.before + tap * axis.dilation;
}

/// Which of an axis' windows has this tap on the pixel; -1: none.
LOCKSTEP_HOST_DEVICE inline std::int64_t window_over(const WindowAxis& axis, std::int64_t pixel, std::int64_t tap,
                                                     std::int64_t windows) {
  const std::int64_t from = pixel + axis.before - tap * axis.dilation;
  if (from < 0 || from % axis.stride != 0 || from / axis.stride >= windows) return -1;
  return from / axis.stride;
}

/// A window that covers a pixel.
struct CoveringWindow {
  std::int64_t row, column;  ///< of the output
  std::int64_t output;       ///< element, of the pixel's channel
  std::int64_t tap;          ///< the one on the pixel, row-major
};

/// visit(covering) for the windows that cover element i of the input, in order; the output has the same channels.
template <class Visit>
LOCKSTEP_HOST_DEVICE void for_windows_over(const Window& window, const WindowShape& image, std::int64_t i,
                                           const Visit& visit) {
  const ImagePlace at(i, image.height, image.width, image.channels);
  for (std::int64_t y = window.height.kernel - 1; y >= 0; --y) {  // the last tap is that of the first window
    const std::int64_t row = window_over(window.height, at.row, y, image.out_height);
    if (row < 0) continue;
    for (std::int64_t x = window.width.kernel - 1; x >= 0; --x) {
      const std::int64_t column = window_over(window.width, at.column, x, image.out_width);
      if (column < 0) continue;
      const std::int64_t pixel = (at.sample * image.out_height + row) * image.out_width + column;
      visit(CoveringWindow{row, column, pixel * image.channels + at.channel, y * window.width.kernel + x});
    }
  }
}

}  // namespace lockstep::ops
