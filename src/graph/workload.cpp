#include "graph/workload.hpp"

#include "core/digest.hpp"
#include "lockstep/op.hpp"

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

}  // namespace lockstep
