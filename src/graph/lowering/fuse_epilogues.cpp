// x -> batch_norm -> relu becomes x -> batch_norm with the epilogue relu: the value in between is never written to
// memory.
#include <algorithm>

#include "graph/lowering/lower.hpp"

namespace lockstep {

namespace {

bool can_apply(const Node& node, const OpDef& op, DeviceKind device) {
  const auto found = node.op->epilogues.find(device);
  if (node.epilogue != nullptr || found == node.op->epilogues.end()) return false;
  return std::find(found->second.begin(), found->second.end(), op.name) != found->second.end();
}

}  // namespace

int fuse_epilogues(Graph& graph, const LoweringTarget& target) {
  const std::vector<int> readers = readers_of(graph);
  std::vector<bool> gone(graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.inputs.size() != 1 || !node.parameters.empty() || !node.states.empty()) continue;
    Value& between = graph.values[node.inputs[0]];
    if (between.producer < 0 || readers[node.inputs[0]] != 1) continue;
    const std::int32_t producer = between.producer;
    Node& before = graph.nodes[producer];
    if (before.outputs.size() != 1 || !can_apply(before, *node.op, target.device)) continue;
    before.epilogue = node.op;
    before.outputs = node.outputs;
    graph.values[node.outputs[0]].producer = producer;
    between.producer = -1;
    gone[i] = true;
  }
  remove_nodes(graph, gone);
  return std::count(gone.begin(), gone.end(), true);
}

}  // namespace lockstep
