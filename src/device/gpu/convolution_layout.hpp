// A convolution as cuDNN sees it: sizes in the order batch or filters, channels, height, width; the strides describe
// the layout in memory.
#pragma once

#include <array>
#include <cstdint>

namespace lockstep::device {

struct ImageLayout {
  std::array<std::int64_t, 4> sizes{}, strides{};  ///< elements
};

/// Pixels, as height and width.
using ImageAxes = std::array<std::int64_t, 2>;

struct ConvolutionLayout {
  ImageLayout image, weight, output;
  ImageAxes before{}, after{}, stride{}, dilation{};
};

/// Channels last: [batch, height, width, channels] in memory.
constexpr ImageLayout channels_last(std::int64_t batch, std::int64_t channels, std::int64_t height,
                                    std::int64_t width) {
  return {{batch, channels, height, width}, {height * width * channels, 1, width * channels, channels}};
}

}  // namespace lockstep::device
