// What an op is in PyTorch: an expression over the names of its inputs and tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lockstep/graph.hpp"

namespace lockstep::formats {

/// A node to be written. An image, a value of four dimensions, has channels first.
struct TorchCall {
  const Graph& graph;
  const Node& node;
  std::vector<std::string> inputs;   ///< names of variables
  std::vector<std::string> tensors;  ///< parameters and states: 't["stem.weight"]'
  bool flat_image = false;           ///< input 0 is a flattened image, in PyTorch's order

  const Attributes& attributes() const { return node.attributes; }
  const TensorSpec& spec(std::size_t i = 0) const { return graph.at(node.inputs.at(i)).spec; }
  const Shape& shape() const { return spec().shape; }
  const Shape& output() const { return graph.at(node.outputs.front()).spec.shape; }
  bool is_image() const { return shape().size() == 4; }
  /// Input i with channels last, whatever its dimensions.
  std::string last(std::size_t i = 0) const;
  /// The output, from one with channels last.
  std::string from_last(const std::string& value) const;
  /// A dimension of the model, here.
  std::size_t axis(std::size_t ours) const;
  /// A tensor, or None if the node has none of this index.
  std::string optional(std::size_t i) const { return i < tensors.size() ? tensors[i] : "None"; }
};

using TorchFunction = std::function<std::string(const TorchCall&)>;

/// By op.
[[nodiscard]] const std::map<std::string, TorchFunction>& torch_functions();

}  // namespace lockstep::formats
