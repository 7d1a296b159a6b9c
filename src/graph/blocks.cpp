#include "graph/blocks.hpp"

#include "lockstep/op.hpp"

namespace lockstep {

Blocks::Blocks(const Graph& graph, const std::vector<ValueId>& sent)
    : block_of_(graph.nodes.size(), -1), read_outside_(graph.values.size()) {
  const std::string* name = nullptr;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const std::string& here = graph.nodes[n].block;
    if (!here.empty()) {
      const std::int32_t node = n;
      if (name == nullptr || *name != here) blocks_.push_back({node, node});
      blocks_.back().end = node + 1;
      block_of_[n] = static_cast<std::int32_t>(blocks_.size()) - 1;
    }
    name = here.empty() ? nullptr : &here;
  }
  if (graph.output >= 0) read_outside_[graph.output] = true;
  for (const ValueId id : sent) read_outside_[id] = true;
  // A view is not a tensor of its own: whatever reads it reads the tensor that it is a view of.
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    for (const ValueId id : node.inputs) {
      const std::int32_t producer = graph.at(id).producer;
      const bool elsewhere = producer >= 0 && block_of_[producer] != block_of_[n];
      const bool through_view = node.op->view && is_read_outside(node.outputs[0]);
      if (elsewhere || through_view) read_outside_[id] = true;
    }
  }
}

const Block* Blocks::of(std::int32_t node) const {
  const std::size_t n = node;
  return n >= block_of_.size() || block_of_[n] < 0 ? nullptr : &blocks_[block_of_[n]];
}

}  // namespace lockstep
