// Which tensors of a model depend on the order of a flattened image. Channels are last here, so that `flatten` yields
// [height, width, channel]; in PyTorch and in ONNX it yields [channel, height, width]. Weights of later layers that
// read or make such values are converted to the other order.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lockstep/graph.hpp"

namespace lockstep {

/// The sizes of an image that was flattened.
struct FlattenedImage {
  std::int64_t height = 1, width = 1, channels = 1;
  [[nodiscard]] std::int64_t elements() const { return height * width * channels; }
  /// The position of element `i` if channels come first.
  [[nodiscard]] std::int64_t place_channels_first(std::int64_t i) const {
    return (i % channels) * height * width + i / channels;
  }
  bool operator==(const FlattenedImage&) const = default;
};

struct FlattenedTensors {
  std::map<std::string, FlattenedImage> by_name;  ///< parameters and states: the image that their last dimension
                                                  ///< follows
  std::string unclear;  ///< a layer that mixes a flattened image with something else; empty: none
};

/// For images with one channel, or one pixel, both orders are the same: such tensors are not listed.
[[nodiscard]] FlattenedTensors flattened_tensors(const Graph& graph);

}  // namespace lockstep
