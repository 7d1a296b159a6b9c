#include "graph/lowering/rewrite.hpp"

#include <algorithm>

namespace lockstep {

std::vector<int> readers_of(const Graph& graph) {
  std::vector<int> readers(graph.values.size());
  const auto read = [&](ValueId id) { ++readers[static_cast<std::size_t>(id)]; };
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
    place[i] = static_cast<std::int32_t>(kept.size());
    if (!gone[i]) kept.push_back(std::move(graph.nodes[i]));
  }
  graph.nodes = std::move(kept);
  if (graph.loss >= 0) graph.loss = place[static_cast<std::size_t>(graph.loss)];
  for (auto& metric : graph.metrics) metric = place[static_cast<std::size_t>(metric)];
  for (Value& value : graph.values) {
    if (value.producer >= 0) value.producer = place[static_cast<std::size_t>(value.producer)];
  }
}

}  // namespace lockstep
