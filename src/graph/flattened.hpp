// Which tensors of a model depend on the order of a flattened image. Channels are last here, so that `flatten` yields
// [height, width, channel], and so does what is made an image again; in PyTorch and in ONNX both are [channel, height,
// width]. Weights of layers that read or make such values are converted to the other order.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "lockstep/graph.hpp"

namespace lockstep {

/// The sizes of an image that was flattened, or is made of a row. Of one channel, or one pixel, both orders are the
/// same.
struct FlattenedImage {
  std::int64_t height = 1, width = 1, channels = 1;
  std::int64_t elements() const { return height * width * channels; }
  /// The position of element `i` if channels come first.
  std::int64_t place_channels_first(std::int64_t i) const { return (i % channels) * height * width + i / channels; }
  bool operator==(const FlattenedImage&) const = default;
};

/// What the dimensions of a tensor follow.
struct FlattenedTensor {
  FlattenedImage columns;  ///< the last one; of one element: none
  FlattenedImage rows;     ///< of a linear layer's weight that makes an image, the first one
  /// The position in PyTorch's order of element `i` of a tensor whose last dimension is `size`.
  std::int64_t place_in_torch(std::int64_t i, std::int64_t size) const {
    return rows.place_channels_first(i / size) * size + columns.place_channels_first(i % size);
  }
  bool operator==(const FlattenedTensor&) const = default;
};

struct FlattenedTensors {
  std::map<std::string, FlattenedTensor> by_name;  ///< parameters and states
  std::set<ValueId> values;                        ///< rows of numbers that have an image's order
  std::string unclear;  ///< a layer that mixes a flattened image with something else; empty: none
  std::string unmade;   ///< a layer that makes an image of numbers that no linear layer makes; empty: none
};

/// Tensors whose order is the same in both are not listed.
[[nodiscard]] FlattenedTensors flattened_tensors(const Graph& graph);

}  // namespace lockstep
