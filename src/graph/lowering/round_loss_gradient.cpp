// On GPUs, the gradient that a loss makes of the model's output is stored as the last layer's products read it: rounded
// to their type, in rows that begin at multiples of 16 bytes. Otherwise it would be written in float32 and copied,
// which for a vocabulary is as many bytes as all of a model's activations. The rounding is the same, and so are the
// bits.
#include "graph/gradient_flow.hpp"
#include "graph/lowering/lower.hpp"
#include "graph/weighted_loss.hpp"

namespace lockstep {

namespace {

/// Whether the device's kernel of this op is the registered one, and can do its part.
bool rounds(const Node& node, const LoweringTarget& target) {
  const OpDef* const registered = target.ops->find(node.op->name);
  return node.op->rounds_gradient.contains(target.device) && registered != nullptr &&
         registered->rounds_gradient.contains(target.device);
}

/// Whether any node but the loss adds to the gradient of `id`.
bool others_add(const Graph& graph, ValueId id) {
  const GradientFlow flow = gradient_flow(graph);
  for (std::int32_t n = 0; n < static_cast<std::int32_t>(graph.nodes.size()); ++n) {
    const auto& inputs = graph.nodes[n].inputs;
    for (std::size_t i = 0; n != graph.loss && i < inputs.size(); ++i) {
      if (inputs[i] == id && adds_gradient(graph, flow, n, i)) return true;
    }
  }
  return false;
}

}  // namespace

// Not in float16: the loss's scale is a factor of the gradient before it is rounded.
int round_loss_gradient(Graph& graph, const LoweringTarget& target) {
  constexpr std::int64_t kAligned = 8;  // elements
  if (graph.loss < 0 || target.ops == nullptr) return 0;
  const Node& loss = graph.nodes[graph.loss];
  if (is_weighted(loss)) return 0;  // weights are factors of it before it is rounded
  Value& scores = graph.values[loss.inputs[0]];
  if (scores.producer < 0 || scores.spec.dtype != DType::f32) return 0;
  const Node& layer = graph.nodes[scores.producer];
  if (layer.compute_type != DType::bf16 || layer.epilogue != nullptr || layer.outputs[0] != loss.inputs[0]) return 0;
  if (!rounds(loss, target) || !rounds(layer, target) || others_add(graph, loss.inputs[0])) return 0;
  scores.rounded_gradient = {layer.compute_type, (kAligned - scores.spec.shape.back() % kAligned) % kAligned};
  return 1;
}

}  // namespace lockstep
