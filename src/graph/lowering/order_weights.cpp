// On a GPU, a convolution's weight is stored as its library needs it, with channels last, and so are its gradient and
// its optimizer state. Otherwise each micro-batch would reorder the weight twice, and its gradient once.
#include <algorithm>

#include "core/filter_sizes.hpp"
#include "graph/lowering/lower.hpp"
#include "graph/weight_order.hpp"

namespace lockstep {

int order_weights(Graph& graph, const LoweringTarget& target) {
  const auto takes = [&](const Node& node, ValueId id) {
    return node.op->channels_last.contains(target.device) && node.parameters[0] == id;
  };
  int changes = 0;
  for (const ValueId id : graph.parameters) {
    Value& value = graph.values[id];
    const bool all = std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
      const auto& read = node.parameters;
      return std::find(read.begin(), read.end(), id) == read.end() || takes(node, id);
    });
    if (!all || !filter_sizes(value.spec.shape).orders_differ()) continue;
    value.channels_last = true;
    ++changes;
  }
  return changes;
}

}  // namespace lockstep
