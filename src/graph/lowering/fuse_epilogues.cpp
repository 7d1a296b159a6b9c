// x -> batch_norm -> relu becomes x -> batch_norm with the epilogue relu: what lies between is never written to memory.
#include <algorithm>

#include "graph/lowering/lower.hpp"
#include "lockstep/op.hpp"

namespace lockstep {

namespace {

/// How many nodes read each value; results of the graph count.
std::vector<int> readers_of(const Graph& graph) {
  std::vector<int> readers(graph.values.size());
  const auto read = [&](ValueId id) { ++readers[static_cast<std::size_t>(id)]; };
  for (const Node& node : graph.nodes) std::for_each(node.inputs.begin(), node.inputs.end(), read);
  if (graph.output >= 0) read(graph.output);
  return readers;
}

bool can_apply(const Node& node, const OpDef& op, DeviceKind device) {
  const auto found = node.op->epilogues.find(device);
  if (node.epilogue != nullptr || found == node.op->epilogues.end()) return false;
  return std::find(found->second.begin(), found->second.end(), op.name) != found->second.end();
}

/// Removes nodes, and counts the others anew.
void remove(Graph& graph, const std::vector<bool>& gone) {
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

}  // namespace

int fuse_epilogues(Graph& graph, DeviceKind device) {
  const std::vector<int> readers = readers_of(graph);
  std::vector<bool> gone(graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.inputs.size() != 1 || !node.parameters.empty() || !node.states.empty()) continue;
    Value& between = graph.values[static_cast<std::size_t>(node.inputs[0])];
    if (between.producer < 0 || readers[static_cast<std::size_t>(node.inputs[0])] != 1) continue;
    const std::int32_t producer = between.producer;
    Node& before = graph.nodes[static_cast<std::size_t>(producer)];
    if (before.outputs.size() != 1 || !can_apply(before, *node.op, device)) continue;
    before.epilogue = node.op;
    before.outputs = node.outputs;
    graph.values[static_cast<std::size_t>(node.outputs[0])].producer = producer;
    between.producer = -1;
    gone[i] = true;
  }
  remove(graph, gone);
  return static_cast<int>(std::count(gone.begin(), gone.end(), true));
}

}  // namespace lockstep
