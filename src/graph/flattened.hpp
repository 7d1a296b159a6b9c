// Which tensors of a model follow the order of a flattened image. Channels come last here, so that `flatten` gives
// [height, width, channel]; in PyTorch and in ONNX it gives [channel, height, width]. Weights of layers behind it that
// come from there, or go there, are put in the other order.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lockstep/graph.hpp"

namespace lockstep {

/// Of an image that was flattened.
struct FlattenedImage {
  std::int64_t height = 1, width = 1, channels = 1;
  [[nodiscard]] std::int64_t elements() const { return height * width * channels; }
  /// Where element `i` is when channels come first.
  [[nodiscard]] std::int64_t place_channels_first(std::int64_t i) const {
    return (i % channels) * height * width + i / channels;
  }
  bool operator==(const FlattenedImage&) const = default;
};

struct FlattenedTensors {
  std::map<std::string, FlattenedImage> by_name;  ///< parameters and states: what their last dimension follows
  std::string unclear;  ///< a layer that mixes a flattened image with something else; empty: there is none
};

/// Of images with one channel, or one pixel, both orders are the same: tensors behind them are not listed.
[[nodiscard]] FlattenedTensors flattened_tensors(const Graph& graph);

}  // namespace lockstep
