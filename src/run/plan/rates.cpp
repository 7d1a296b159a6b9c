#include "run/plan/rates.hpp"

#include <algorithm>

#include "graph/workload.hpp"

namespace lockstep::plan {

namespace {

double bytes_of(const Graph& graph, const Node& node) {
  std::size_t bytes = 0;
  for (const auto* list : {&node.inputs, &node.parameters, &node.outputs}) {
    for (const ValueId id : *list) bytes += graph.at(id).spec.bytes();
  }
  return bytes;
}

}  // namespace

bool multiplies_matrices(const Node& node) {
  return node.op->multiplies || node.op->name == "lstm" || node.op->name == "gru";
}

std::vector<NodeSeconds> seconds_by_rates(const Graph& graph, const Rates& rates) {
  std::vector<NodeSeconds> seconds;
  for (const Node& node : graph.nodes) {
    NodeSeconds& of = seconds.emplace_back();
    if (node.op->view) continue;
    const Cost cost = cost_of(graph, node);
    const double bytes = bytes_of(graph, node) / rates.element_bytes;
    const double flops = node.op->name == "conv" ? rates.conv_flops : rates.matmul_flops;
    const bool multiplies = multiplies_matrices(node);
    of.forward = rates.kernel_seconds + (multiplies ? std::max(bytes, cost.forward_flops / flops) : bytes);
    of.backward =
        2 * rates.kernel_seconds + (multiplies ? std::max(2 * bytes, cost.backward_flops / flops) : 2 * bytes);
  }
  return seconds;
}

}  // namespace lockstep::plan
