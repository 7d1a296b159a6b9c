#include "graph/flattened.hpp"

#include <algorithm>

#include "lockstep/op.hpp"

namespace lockstep {

namespace {

/// Follows flattened images through the graph, node by node.
class Walk {
 public:
  explicit Walk(const Graph& graph) : graph_(graph) {}

  FlattenedTensors run() {
    for (const Node& node : graph_.nodes) visit(node);
    return std::move(found_);
  }

 private:
  void visit(const Node& node) {
    if (node.inputs.empty() || node.outputs.empty()) return;
    const Shape& in = graph_.at(node.inputs.front()).spec.shape;
    const Shape& out = graph_.at(node.outputs.front()).spec.shape;
    const FlattenedImage* const image = image_of(node);
    if (image != nullptr) return follow(node, *image, in, out);
    const bool flattens = node.parameters.empty() && in.size() == 4 && out.size() == 2 && elements(in) == elements(out);
    if (!flattens) return;
    const FlattenedImage flattened{in[1], in[2], in[3]};
    if (in[3] > 1 && in[1] * in[2] > 1) images_[node.outputs.front()] = flattened;
  }

  /// The flattened image that the node reads; null: none.
  const FlattenedImage* image_of(const Node& node) const {
    for (const ValueId id : node.inputs) {
      const auto found = images_.find(id);
      if (found != images_.end()) return &found->second;
    }
    return nullptr;
  }

  void follow(const Node& node, const FlattenedImage image, const Shape& in, const Shape& out) {
    const bool all = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      const auto found = images_.find(id);
      return found != images_.end() && found->second == image;
    });
    const bool is_back = out == Shape{in.front(), image.height, image.width, image.channels};
    if (node.op->name == "linear") {
      note(node.parameters.front(), image);
    } else if (all && in == out) {  // elementwise, or over all elements
      for (const auto* list : {&node.parameters, &node.states}) {
        for (const ValueId id : *list) note(id, image);
      }
      images_[node.outputs.front()] = image;
    } else if (!is_back && !judges(node)) {
      found_.unclear = node.op->name + " '" + node.name + "'";
    }
  }

  /// A loss or a metric.
  bool judges(const Node& node) const {
    const auto number = static_cast<std::int32_t>(&node - graph_.nodes.data());
    return number == graph_.loss ||
           std::find(graph_.metrics.begin(), graph_.metrics.end(), number) != graph_.metrics.end();
  }

  void note(ValueId id, const FlattenedImage& image) {
    const Value& tensor = graph_.at(id);
    if (tensor.spec.shape.empty() || tensor.spec.shape.back() != image.elements()) return;
    found_.by_name[tensor.name] = image;
  }

  const Graph& graph_;
  std::map<ValueId, FlattenedImage> images_;
  FlattenedTensors found_;
};

}  // namespace

FlattenedTensors flattened_tensors(const Graph& graph) {
  return Walk(graph).run();
}

}  // namespace lockstep
