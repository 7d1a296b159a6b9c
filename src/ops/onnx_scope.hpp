// How ops are written to ONNX: each has a function NAME_to_onnx(OnnxScope&), in <folder>/<folder>_onnx.cpp, that adds
// ONNX's nodes for one of our own (in inference: dropout is nothing). CMake lists them. Meant is opset 20 of the
// default domain.
//
// Dimension 0 is the batch, of any size. Our activations have channels last; ONNX's layers for images have them behind
// the batch. A value is kept in the order that it was computed in, and transposed where somebody needs the other one,
// so that a run of convolutions, norms and elementwise ops has none between them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/graph.hpp"

namespace lockstep::ops {

struct OnnxAttribute {
  std::string name;
  std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::vector<std::string>> value;
};

struct OnnxNode {
  std::string type, name;
  std::vector<std::string> inputs;  ///< "": left out
  std::vector<std::string> outputs;
  std::vector<OnnxAttribute> attributes;
  std::string domain = {};  ///< empty: the default one
};

/// A constant.
struct OnnxConstant {
  std::string name;
  Shape shape;
  std::variant<std::vector<float>, std::vector<double>, std::vector<std::int64_t>, std::vector<std::string>> values;
};

enum class Layout : std::uint8_t {
  channels_last,   ///< ours: [batch, ..., channels]
  channels_first,  ///< [batch, channels, ...]; the same for two dimensions
};

/// The nodes of a graph so far, in order.
struct OnnxNodes {
  std::vector<OnnxNode> nodes;
  std::vector<OnnxConstant> constants;
  std::map<std::pair<ValueId, Layout>, std::string> values;  ///< their names; our own inputs have channels last
};

class OnnxScope {
 public:
  using Values = std::function<std::span<const float>(ValueId)>;
  /// `values`: of a parameter or state.
  OnnxScope(const Graph& graph, const Node& node, const Values& values, OnnxNodes& out)
      : graph_(graph), node_(node), values_(values), out_(out) {}

  const Node& node() const { return node_; }
  const Attributes& attributes() const { return node_.attributes; }
  const TensorSpec& input_spec(std::size_t i = 0) const { return graph_.at(node_.inputs.at(i)).spec; }
  const Shape& input_shape(std::size_t i = 0) const { return input_spec(i).shape; }
  const Shape& output_shape() const { return graph_.at(node_.outputs.front()).spec.shape; }

  /// The order that input 0 was computed in.
  Layout layout() const;
  /// The name of input i, in an order; it is transposed if it has not been yet.
  [[nodiscard]] std::string input(std::size_t i = 0, Layout layout = Layout::channels_last);
  /// Where dimension `axis` of our order is in another.
  [[nodiscard]] static std::int64_t axis_in(Layout layout, std::size_t axis, std::size_t dimensions);

  std::size_t parameters() const { return node_.parameters.size(); }
  std::string parameter(std::size_t i) const { return graph_.at(node_.parameters.at(i)).name; }
  std::string state(std::size_t i) const { return graph_.at(node_.states.at(i)).name; }
  std::span<const float> parameter_values(std::size_t i) const { return values_(node_.parameters.at(i)); }

  /// Adds a node; returns the name of its output.
  std::string add(const std::string& type, std::vector<std::string> inputs, std::vector<OnnxAttribute> attributes = {});
  /// The same for several outputs.
  std::vector<std::string> add_several(const std::string& type, std::vector<std::string> inputs, std::size_t outputs,
                                       std::vector<OnnxAttribute> attributes = {});
  std::string integers(std::vector<std::int64_t> values);
  std::string constant(std::vector<float> values, Shape shape);
  std::string number(float value) { return constant(std::vector<float>{value}, {}); }
  /// A view in another shape: 0 stands for the batch.
  std::string reshape(const std::string& tensor, std::vector<std::int64_t> shape) {
    return add("Reshape", {tensor, integers(std::move(shape))});
  }
  std::string transpose(const std::string& tensor, std::vector<std::int64_t> order) {
    return add("Transpose", {tensor}, {{"perm", std::move(order)}});
  }

  /// Input `index`, lengths (ops/lengths.hpp), in another of ONNX's types.
  std::string lengths_as_floats(std::size_t index) { return add("Cast", {input(index)}, {{"to", std::int64_t{1}}}); }
  std::string lengths_as_integers(std::size_t index) { return add("Cast", {input(index)}, {{"to", std::int64_t{7}}}); }
  /// Whether each position [b, positions] comes before its sample's end.
  std::string before_end(std::size_t index, std::int64_t positions);
  /// Input 0 [b, T, ...], with `value` at the positions behind a sample's end, if input 1 is lengths.
  std::string with_padding(float value);

  /// Output 0 is this tensor.
  void result(const std::string& tensor, Layout layout = Layout::channels_last) {
    out_.values[{node_.outputs.front(), layout}] = tensor;
  }
  /// Output 0 is an elementwise function of input 0: a node of this type.
  void elementwise(const std::string& type, std::vector<OnnxAttribute> attributes = {});

 private:
  std::string fresh_name();

  const Graph& graph_;
  const Node& node_;
  const Values& values_;
  OnnxNodes& out_;
  int names_ = 0;
};

using OnnxFunction = std::function<void(OnnxScope&)>;

/// By op; ops that are not here cannot be written to ONNX.
[[nodiscard]] const std::map<std::string, OnnxFunction>& onnx_functions();

}  // namespace lockstep::ops
