#include "graph/gradient_flow.hpp"

#include <algorithm>

#include "lockstep/op.hpp"

namespace lockstep {

namespace {

std::vector<bool> wanted_values(const Graph& graph) {
  std::vector<bool> wanted(graph.values.size());
  const auto is_wanted = [&](ValueId id) { return wanted[id]; };
  for (const ValueId id : graph.parameters) wanted[id] = !graph.at(id).frozen;
  for (const Node& node : graph.nodes) {
    if (!node.op->differentiable || node.op->kind == OpKind::metric) continue;
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(), is_wanted) ||
                     std::any_of(node.parameters.begin(), node.parameters.end(), is_wanted);
    for (const ValueId id : node.outputs) wanted[id] = any;
  }
  return wanted;
}

/// Whether its input's gradient is its output's, renamed or computed from the epilogue's.
bool passes_gradient(const Node& node) {
  return node.op->view || node.op->passes_gradient;
}

}  // namespace

bool adds_gradient(const Graph& graph, const GradientFlow& flow, std::int32_t node, std::size_t i) {
  const Node& at = graph.nodes[node];
  if (!flow.backward[node] || !flow.wanted[at.inputs[i]]) {
    return false;
  }
  const auto& constant = at.op->constant_inputs;
  return passes_gradient(at) || std::find(constant.begin(), constant.end(), static_cast<int>(i)) == constant.end();
}

GradientFlow gradient_flow(const Graph& graph) {
  GradientFlow flow{wanted_values(graph), std::vector<bool>(graph.nodes.size())};
  std::vector<bool> reaches_loss(graph.values.size());
  for (auto n = static_cast<std::int32_t>(graph.nodes.size()) - 1; n >= 0; --n) {
    const Node& node = graph.nodes[n];
    const bool is_loss = n == graph.loss;
    if (node.op->kind == OpKind::metric) continue;
    const std::size_t output = node.outputs[0];
    flow.backward[n] = flow.wanted[output] && (is_loss || reaches_loss[output]);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (adds_gradient(graph, flow, n, i)) reaches_loss[node.inputs[i]] = true;
    }
  }
  return flow;
}

}  // namespace lockstep
