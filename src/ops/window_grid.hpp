// Windows over images [batch, height, width, channels] on a Grid: the pixel under a tap, and the inverse.
#pragma once

#include <cstdint>

#include "core/divisor.hpp"
#include "core/host_device.hpp"
#include "lockstep/error.hpp"
#include "ops/window.hpp"

namespace lockstep::ops {

/// Position of element i of images of `height` by `width` pixels and `channels`. Size: a number or a Divisor.
struct ImagePosition {
  template <class Size>
  LOCKSTEP_HOST_DEVICE ImagePosition(std::int64_t i, const Size& height, const Size& width, const Size& channels)
      : channel(i % channels),
        column(i / channels % width),
        row(i / channels / width % height),
        sample(i / channels / width / height) {}
  std::int64_t channel, column, row, sample;
};

/// The pixel of an axis under a tap of window `index`; it may be outside of the image.
LOCKSTEP_HOST_DEVICE inline std::int64_t pixel_under(const WindowAxis& axis, std::int64_t index, std::int64_t tap) {
  return index * axis.stride - axis.before + tap * axis.dilation;
}

/// Which window of an axis has this tap on the pixel; -1: none.
LOCKSTEP_HOST_DEVICE inline std::int64_t window_over(const WindowAxis& axis, std::int64_t pixel, std::int64_t tap,
                                                     std::int64_t windows) {
  const std::int64_t from = pixel + axis.before - tap * axis.dilation;
  if (from < 0 || from % axis.stride != 0 || from / axis.stride >= windows) return -1;
  return from / axis.stride;
}

/// Sizes of images, in the form that ImagePosition needs.
struct ImageDivisors {
  ImageDivisors(std::int64_t image_height, std::int64_t image_width, std::int64_t image_channels)
      : height(image_height), width(image_width), channels(image_channels) {}
  Divisor height, width, channels;
  LOCKSTEP_HOST_DEVICE ImagePosition position(std::int64_t i) const { return {i, height, width, channels}; }
};

/// A window that covers a pixel.
struct CoveringWindow {
  std::int64_t row, column;  ///< of the output
  std::int64_t output;       ///< index, in the pixel's channel
  std::int64_t tap;          ///< the tap that is on the pixel, row-major
};

/// The windows of one axis that cover a pixel.
class CoveringAxis {
 public:
  CoveringAxis(const WindowAxis& axis, std::int64_t windows)
      : kernel_(axis.kernel), before_(axis.before), stride_(axis.stride), windows_(windows) {
    LOCKSTEP_CHECK(axis.dilation == 1, "windows without gaps");
  }

  /// Calls visit(window, tap) for each, in order.
  template <class Visit>
  LOCKSTEP_HOST_DEVICE void for_windows_over(std::int64_t pixel, const Visit& visit) const {
    const std::int64_t padded = pixel + before_;
    const std::int64_t first = padded < kernel_ ? 0 : (padded - kernel_) / stride_ + 1;
    const std::int64_t last = padded / stride_, end = last < windows_ ? last + 1 : windows_;
    for (std::int64_t window = first; window < end; ++window) visit(window, padded - window * stride_.value());
  }

 private:
  std::int64_t kernel_, before_;
  Divisor stride_;
  std::int64_t windows_;
};

/// The windows that cover an element of the input, for computing its gradient. The output has the same channels.
class CoveringWindows {
 public:
  CoveringWindows(const Window& window, const WindowShape& image)
      : input_(image.height, image.width, image.channels),
        rows_(window.height, image.out_height),
        columns_(window.width, image.out_width),
        out_height_(image.out_height),
        out_width_(image.out_width),
        taps_of_row_(window.width.kernel) {}

  /// Calls visit(covering) for the windows that cover element i of the input, in order.
  template <class Visit>
  LOCKSTEP_HOST_DEVICE void for_windows_over(std::int64_t i, const Visit& visit) const {
    const ImagePosition at = input_.position(i);
    rows_.for_windows_over(at.row, [&](std::int64_t row, std::int64_t tap_row) {
      columns_.for_windows_over(at.column, [&](std::int64_t column, std::int64_t tap_column) {
        const std::int64_t pixel = (at.sample * out_height_ + row) * out_width_ + column;
        visit(CoveringWindow{row, column, pixel * input_.channels.value() + at.channel,
                             tap_row * taps_of_row_ + tap_column});
      });
    });
  }

 private:
  ImageDivisors input_;
  CoveringAxis rows_, columns_;
  std::int64_t out_height_, out_width_, taps_of_row_;
};

}  // namespace lockstep::ops
