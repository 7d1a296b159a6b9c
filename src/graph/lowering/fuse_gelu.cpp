// linear -> gelu -> linear becomes linear_gelu -> gelu_linear on GPUs: x -> (pre, y), (y, pre) -> z. So the widest
// tensors of a transformer are written and read by the products themselves. Gradients skip y: gelu_linear computes the
// gradient of `pre`, from which linear_gelu continues. In low precision, `pre` is not rounded before gelu is applied to
// it, nor is its gradient between the product and gelu's slope.
#include "graph/lowering/lower.hpp"

namespace lockstep {

namespace {

/// Only the tanh approximation, which libraries can compute within a product.
bool is_gelu(const Node& node) {
  return node.op->name == "gelu" && node.attributes.text("approximate") == "tanh";
}

/// A tied weight is read by another node, too, and its gradients must not change.
bool is_untied_linear(const Node& node, const std::vector<int>& readers) {
  return node.op->name == "linear" && readers[node.parameters[0]] == 1;
}

/// The only node that reads it; -1: there are several or none.
std::int32_t only_reader(const Graph& graph, ValueId id, const std::vector<int>& readers) {
  if (readers[id] != 1) return -1;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!node.inputs.empty() && node.inputs[0] == id) return i;
  }
  return -1;
}

}  // namespace

int fuse_gelu(Graph& graph, const LoweringTarget& target) {
  const OpDef* const linear_gelu = target.ops == nullptr ? nullptr : target.ops->find("linear_gelu");
  const OpDef* const gelu_linear = target.ops == nullptr ? nullptr : target.ops->find("gelu_linear");
  if (target.device != DeviceKind::cuda || linear_gelu == nullptr || gelu_linear == nullptr) return 0;
  const std::vector<int> readers = readers_of(graph);
  std::vector<bool> gone(graph.nodes.size());
  int changes = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& first = graph.nodes[i];
    if (!is_untied_linear(first, readers)) continue;
    const std::int32_t gelu = only_reader(graph, first.outputs[0], readers);
    if (gelu < 0 || !is_gelu(graph.nodes[gelu])) continue;
    const ValueId pre = first.outputs[0], y = graph.nodes[gelu].outputs[0];
    const std::int32_t last = only_reader(graph, y, readers);
    if (last < 0 || !is_untied_linear(graph.nodes[last], readers)) continue;
    Node& second = graph.nodes[last];
    first.op = linear_gelu;
    first.outputs = {pre, y};
    graph.values[y].producer = i;
    second.op = gelu_linear;
    second.inputs = {y, pre};
    gone[gelu] = true;
    ++changes;
  }
  remove_nodes(graph, gone);
  return changes;
}

}  // namespace lockstep
