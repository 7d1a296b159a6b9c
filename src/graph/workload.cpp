#include "graph/workload.hpp"

#include <vector>

#include "core/digest.hpp"

namespace lockstep {

std::string workload_of(const Graph& graph) {
  Sha256 hash;
  for (const Node& node : graph.nodes) {
    hash.add(node.op->name);
    for (const auto* values : {&node.inputs, &node.parameters, &node.outputs}) {
      for (const ValueId id : *values) hash.add(to_string(graph.at(id).spec.shape));
    }
    hash.add("\n");
  }
  return hash.hex().substr(0, 12);
}

Cost cost_of(const Graph& graph, const Node& node) {
  if (!node.op->cost) return {};
  std::vector<TensorSpec> inputs;
  for (const ValueId id : node.inputs) {
    TensorSpec spec = graph.at(id).spec;
    if (spec.dtype != DType::i32) spec.dtype = DType::f32;  // as inferred, before precision is lowered
    inputs.push_back(spec);
  }
  return node.op->cost(node.attributes, inputs, node.op->infer(node.attributes, inputs));
}

Cost cost_of(const Graph& graph) {
  Cost sum;
  for (const Node& node : graph.nodes) {
    const Cost cost = cost_of(graph, node);
    sum.forward_flops += cost.forward_flops;
    sum.backward_flops += cost.backward_flops;
  }
  return sum;
}

}  // namespace lockstep
