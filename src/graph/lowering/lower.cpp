#include "graph/lowering/lower.hpp"

#include <algorithm>

namespace lockstep {

const std::vector<LoweringPass>& lowering_passes() {
  static const std::vector<LoweringPass> kPasses = {
      {"fuse_epilogues", "an op that is applied to another's output only is computed by the other's kernel",
       fuse_epilogues},
      {"fuse_gelu", "gelu between two linear layers is computed by their kernels, on GPUs", fuse_gelu},
      {"order_weights", "weights lie as the device's convolutions want them, on GPUs with channels last",
       order_weights},
      {"round_loss_gradient", "the loss rounds its gradient for the products of the last layer, on GPUs in bf16",
       round_loss_gradient},
  };
  return kPasses;
}

Graph lower(Graph graph, const LoweringTarget& target) {
  for (const LoweringPass& pass : lowering_passes()) pass.run(graph, target);
  return graph;
}

std::vector<int> readers_of(const Graph& graph) {
  std::vector<int> readers(graph.values.size());
  const auto read = [&](ValueId id) { ++readers[id]; };
  for (const Node& node : graph.nodes) {
    std::for_each(node.inputs.begin(), node.inputs.end(), read);
    std::for_each(node.parameters.begin(), node.parameters.end(), read);
  }
  if (graph.output >= 0) read(graph.output);
  return readers;
}

void remove_nodes(Graph& graph, const std::vector<bool>& gone) {
  std::vector<std::int32_t> place(graph.nodes.size());
  std::vector<Node> kept;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    place[i] = kept.size();
    if (!gone[i]) kept.push_back(std::move(graph.nodes[i]));
  }
  graph.nodes = std::move(kept);
  if (graph.loss >= 0) graph.loss = place[graph.loss];
  for (auto& metric : graph.metrics) metric = place[metric];
  for (Value& value : graph.values) {
    if (value.producer >= 0) value.producer = place[value.producer];
  }
}

}  // namespace lockstep
