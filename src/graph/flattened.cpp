#include "graph/flattened.hpp"

#include <algorithm>

#include "lockstep/op.hpp"

namespace lockstep {

namespace {

/// Follows flattened images through the graph, node by node.
class FlattenedWalk {
 public:
  explicit FlattenedWalk(const Graph& graph) : graph_(graph) {}

  FlattenedTensors run() {
    for (const Node& node : graph_.nodes) {
      if (makes_image(node)) trace_back(node, node.inputs.front());
    }
    for (const Node& node : graph_.nodes) visit(node);
    for (const auto& [id, image] : images_) found_.values.insert(id);
    return std::move(found_);
  }

 private:
  const Shape& shape(ValueId id) const { return graph_.at(id).spec.shape; }
  FlattenedImage image_at(ValueId id) const { return {shape(id)[1], shape(id)[2], shape(id)[3]}; }
  static bool orders_differ(const FlattenedImage& image) {
    return image.channels > 1 && image.height * image.width > 1;
  }

  /// Whether the node only arranges a value of `from` dimensions as one of `to`.
  bool arranges(const Node& node, std::size_t from, std::size_t to) const {
    if (node.inputs.empty() || node.outputs.empty() || !node.parameters.empty()) return false;
    const Shape &in = shape(node.inputs.front()), &out = shape(node.outputs.front());
    return in.size() == from && out.size() == to && elements(in) == elements(out);
  }
  bool makes_image(const Node& node) const {
    return arranges(node, 2, 4) && orders_differ(image_at(node.outputs.front()));
  }

  /// From an image that is made of a row to the linear layers that make the row, whose rows have the image's order.
  void trace_back(const Node& maker, ValueId id) {
    const std::int32_t number = graph_.at(id).producer;
    const Node* const node = number < 0 ? nullptr : &graph_.nodes[number];
    if (node != nullptr && arranges(*node, 4, 2)) return;  // back to an image
    const FlattenedImage image = image_at(maker.outputs.front());
    if (node != nullptr && node->op->name == "linear") {
      images_[id] = image;
      found_.by_name[graph_.at(node->parameters.front()).name].rows = image;
      for (std::size_t i = 1; i < node->parameters.size(); ++i) note(node->parameters[i], image);
      return;
    }
    const bool elementwise = node != nullptr && std::all_of(node->inputs.begin(), node->inputs.end(),
                                                            [&](ValueId in) { return shape(in) == shape(id); });
    if (!elementwise) {
      if (found_.unmade.empty()) found_.unmade = maker.op->name + " '" + maker.name + "'";
      return;
    }
    for (const ValueId in : node->inputs) trace_back(maker, in);
  }

  void visit(const Node& node) {
    if (node.inputs.empty() || node.outputs.empty()) return;
    const Shape& in = graph_.at(node.inputs.front()).spec.shape;
    const Shape& out = graph_.at(node.outputs.front()).spec.shape;
    const FlattenedImage* const image = image_of(node);
    if (image != nullptr) return follow(node, *image, in, out);
    if (!arranges(node, 4, 2)) return;
    const FlattenedImage flattened = image_at(node.inputs.front());
    if (orders_differ(flattened)) images_[node.outputs.front()] = flattened;
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
    const std::int32_t number = &node - graph_.nodes.data();
    return number == graph_.loss ||
           std::find(graph_.metrics.begin(), graph_.metrics.end(), number) != graph_.metrics.end();
  }

  void note(ValueId id, const FlattenedImage& image) {
    const Value& tensor = graph_.at(id);
    if (tensor.spec.shape.empty() || tensor.spec.shape.back() != image.elements()) return;
    found_.by_name[tensor.name].columns = image;
  }

  const Graph& graph_;
  std::map<ValueId, FlattenedImage> images_;
  FlattenedTensors found_;
};

}  // namespace

FlattenedTensors flattened_tensors(const Graph& graph) {
  return FlattenedWalk(graph).run();
}

}  // namespace lockstep
