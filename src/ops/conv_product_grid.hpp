// The products of conv and conv_transpose on a Grid (device/gpu/product.hpp), each group of channels a group of theirs:
// what stands under windows, over them, and weights, as operands. Padding is zeros.
#pragma once

#include <cstdint>

#include "core/divisor.hpp"
#include "device/gpu/product.hpp"
#include "ops/activations/activations_grid.hpp"
#include "ops/conv/conv_shape.hpp"
#include "ops/window_grid.hpp"

namespace lockstep::ops {

/// The sizes of one group of channels and filters.
struct ConvGroup {
  LOCKSTEP_HOST_DEVICE explicit ConvGroup(const ConvShape& s)
      : channels(s.image.channels / s.groups),
        filters(s.filters / s.groups),
        taps(s.window.height.kernel * s.window.width.kernel),
        channels_last(s.channels_last) {}
  std::int64_t channels, filters, taps;
  bool channels_last;
  /// Index into the weight [all filters, channels, taps], or [all filters, taps, channels].
  LOCKSTEP_HOST_DEVICE std::int64_t weight(std::int64_t filter, std::int64_t channel, std::int64_t tap) const {
    return channels_last ? (filter * taps + tap) * channels + channel : (filter * channels + channel) * taps + tap;
  }
};

/// A tap and a channel of one group: i is tap * channels + channel.
struct TapDivisors {
  TapDivisors(const ConvShape& s, std::int64_t of_group) : channels(of_group), width(s.window.width.kernel) {}
  Divisor channels, width;
};

/// Elements of a convolution's image under windows. A line is a pixel of the output, and k a tap and a channel of the
/// group; or, with `kPixelsAreLines` false, the other way round.
template <class T, bool kPixelsAreLines>
struct PixelsUnderWindows {
  using Element = T;
  static constexpr bool kAlongDepth = kPixelsAreLines;
  const T* image;
  WindowAxis height, width;
  std::int64_t rows, columns, channels;
  Divisor out_height, out_width;
  TapDivisors taps;
  bool packs;
  PixelsUnderWindows(const T* x, const ConvShape& s)
      : image(x),
        height(s.window.height),
        width(s.window.width),
        rows(s.image.height),
        columns(s.image.width),
        channels(s.image.channels),
        out_height(s.image.out_height),
        out_width(s.image.out_width),
        taps(s, ConvGroup(s).channels),
        packs(device::can_pack(x, ConvGroup(s).channels)) {}
  LOCKSTEP_HOST_DEVICE const T* at(std::int64_t group, std::int64_t line, std::int64_t k) const {
    const std::int64_t pixel = kPixelsAreLines ? line : k, of_window = kPixelsAreLines ? k : line;
    const std::int64_t tap = of_window / taps.channels, channel = of_window - tap * taps.channels.value();
    const std::int64_t of_width = pixel / out_width, sample = of_width / out_height;
    const std::int64_t row = pixel_under(height, of_width - sample * out_height.value(), tap / taps.width);
    const std::int64_t column = pixel_under(width, pixel - of_width * out_width.value(), tap % taps.width);
    if (row < 0 || row >= rows || column < 0 || column >= columns) return nullptr;
    return image + ((sample * rows + row) * columns + column) * channels + group * taps.channels.value() + channel;
  }
};

/// Elements of a convolution's output, or its gradient, whose windows are over pixels of the image. A line is a pixel
/// of the image, and k a tap and a filter of the group.
template <class T>
struct WindowsOverPixels {
  using Element = T;
  static constexpr bool kAlongDepth = true;
  const T* output;
  WindowAxis height, width;
  std::int64_t rows, columns, filters;
  Divisor image_height, image_width, stride_down, stride_right;
  TapDivisors taps;
  bool packs;
  WindowsOverPixels(const T* y, const ConvShape& s)
      : output(y),
        height(s.window.height),
        width(s.window.width),
        rows(s.image.out_height),
        columns(s.image.out_width),
        filters(s.filters),
        image_height(s.image.height),
        image_width(s.image.width),
        stride_down(s.window.height.stride),
        stride_right(s.window.width.stride),
        taps(s, ConvGroup(s).filters),
        packs(device::can_pack(y, ConvGroup(s).filters)) {}
  LOCKSTEP_HOST_DEVICE const T* at(std::int64_t group, std::int64_t line, std::int64_t k) const {
    const std::int64_t tap = k / taps.channels, filter = k - tap * taps.channels.value();
    const std::int64_t of_width = line / image_width, sample = of_width / image_height;
    // As far behind the first tap of the first window as the tap of the wanted window is.
    const std::int64_t down =
        of_width - sample * image_height.value() + height.before - tap / taps.width * height.dilation;
    const std::int64_t right = line - of_width * image_width.value() + width.before - tap % taps.width * width.dilation;
    if (down < 0 || right < 0) return nullptr;
    const std::int64_t row = down / stride_down, column = right / stride_right;
    if (row * stride_down.value() != down || column * stride_right.value() != right) return nullptr;
    if (row >= rows || column >= columns) return nullptr;
    return output + ((sample * rows + row) * columns + column) * filters + group * taps.channels.value() + filter;
  }
};

/// A convolution's output, or its gradient. Lines are filters of the group, k pixels.
template <class T>
struct FiltersOfPixels {
  using Element = T;
  static constexpr bool kAlongDepth = false;
  const T* output;
  std::int64_t filters, of_group;
  bool packs;
  FiltersOfPixels(const T* y, const ConvShape& s)
      : output(y), filters(s.filters), of_group(ConvGroup(s).filters), packs(device::can_pack(y, of_group)) {}
  LOCKSTEP_HOST_DEVICE const T* at(std::int64_t group, std::int64_t line, std::int64_t k) const {
    return output + k * filters + group * of_group + line;
  }
};

/// A convolution's weight. Lines are filters of the group, and k a tap and a channel; or (`kFiltersAreLines` false)
/// lines are channels, and k a tap and a filter.
template <class T, bool kFiltersAreLines>
struct ConvWeights {
  using Element = T;
  static constexpr bool kAlongDepth = kFiltersAreLines;
  const T* weight;
  ConvGroup sizes;
  Divisor of_tap;
  bool packs;
  ConvWeights(const T* data, const ConvShape& s)
      : weight(data),
        sizes(s),
        of_tap(kFiltersAreLines ? sizes.channels : sizes.filters),
        packs(s.channels_last && device::can_pack(data, sizes.channels)) {}
  LOCKSTEP_HOST_DEVICE const T* at(std::int64_t group, std::int64_t line, std::int64_t k) const {
    const std::int64_t tap = k / of_tap, rest = k - tap * of_tap.value(), first = group * sizes.filters;
    return weight + (kFiltersAreLines ? sizes.weight(first + line, rest, tap) : sizes.weight(first + rest, line, tap));
  }
};

/// Stores element (pixel, channel of the group) of an image.
template <class Out>
struct StorePixel {
  const float* bias;  ///< null: none
  Out* to;
  std::int64_t channels, of_group;
  bool relu;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t group, std::int64_t pixel, std::int64_t channel, float sum) const {
    const std::int64_t at = group * of_group + channel;
    if (bias != nullptr) sum += bias[at];
    to[pixel * channels + at] = relu ? Relu::of(sum) : sum;
  }
};

/// Stores element (filter, tap and channel) of a weight's gradient.
struct StoreConvWeight {
  float* to;
  ConvGroup sizes;
  Divisor channels;
  LOCKSTEP_HOST_DEVICE void operator()(std::int64_t group, std::int64_t filter, std::int64_t i, float sum) const {
    const std::int64_t tap = i / channels;
    to[sizes.weight(group * sizes.filters + filter, i - tap * channels.value(), tap)] = sum;
  }
};

}  // namespace lockstep::ops
