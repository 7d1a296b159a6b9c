#include "graph/precision.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "lockstep/op.hpp"

namespace lockstep {

namespace {

class Rounding {
 public:
  explicit Rounding(Graph& graph) : graph_(graph), exact_(graph.values.size(), true) {}

  void run(DType precision) {
    for (const Node& node : graph_.nodes) {
      if (node.op->kind != OpKind::layer) continue;
      for (const ValueId id : node.outputs) is_exact(id) = graph_.at(id).spec.dtype != DType::f32;
    }
    if (graph_.output >= 0) is_exact(graph_.output) = true;
    for (const ValueId id : graph_.outputs) is_exact(id) = true;
    for (std::size_t id = 0; id < exact_.size(); ++id) {
      if (graph_.values[id].exact) exact_[id] = true;
    }
    for (const Node& node : graph_.nodes) {
      if (node.op->kind == OpKind::layer) continue;
      for (const ValueId id : node.inputs) is_exact(id) = true;
    }
    while (spread()) {
    }
    for (std::size_t id = 0; id < exact_.size(); ++id) {
      if (!exact_[id]) graph_.values[id].spec.dtype = precision;
    }
    for (Node& node : graph_.nodes) {
      if (node.op->multiplies) node.compute_type = precision;
    }
  }

 private:
  std::vector<bool>::reference is_exact(ValueId id) { return exact_[id]; }

  // A view has its input's bytes, and an op that passes its gradient on gives all inputs the same gradient: so what
  // they read and what they make must have one type.
  bool spread() {
    bool changed = false;
    for (const Node& node : graph_.nodes) {
      if (!node.op->view && !node.op->passes_gradient) continue;
      std::vector<ValueId> values = node.outputs;
      for (const ValueId id : node.inputs) {
        if (node.op->view || graph_.at(id).role == Role::activation) values.push_back(id);
      }
      if (std::none_of(values.begin(), values.end(), [&](ValueId id) { return is_exact(id); })) continue;
      for (const ValueId id : values) {
        changed = changed || !is_exact(id);
        is_exact(id) = true;
      }
    }
    return changed;
  }

  Graph& graph_;
  std::vector<bool> exact_;  ///< by value: whether it keeps its type
};

}  // namespace

bool is_low_precision_weight(const Graph& graph, const Node& node, std::size_t i) {
  return node.compute_type != DType::f32 && graph.at(node.parameters[i]).spec.shape.size() > 1;
}

std::vector<DType> low_precision_weights(const Graph& graph) {
  std::map<ValueId, DType> types;
  for (const Node& node : graph.nodes) {
    for (std::size_t i = 0; i < node.parameters.size(); ++i) {
      if (is_low_precision_weight(graph, node, i)) types[node.parameters[i]] = node.compute_type;
    }
  }
  std::vector<DType> list;
  for (const ValueId id : graph.parameters) list.push_back(types.contains(id) ? types[id] : DType::f32);
  return list;
}

void use_low_precision_weights(Graph& graph) {
  for (Node& node : graph.nodes) node.low_precision_weights = node.compute_type != DType::f32;
}

void allow_tf32(Graph& graph) {
  for (Node& node : graph.nodes) node.fast_float32 = node.op->multiplies;
}

void set_precision(Graph& graph, DType precision) {
  if (precision != DType::f32) Rounding(graph).run(precision);
}

std::size_t gradient_bytes(const Value& value) {
  const auto& [dtype, gap] = value.rounded_gradient;
  const std::int64_t elements = value.spec.elements();
  if (!value.rounded_gradient.rounds() || elements == 0) return value.spec.bytes();
  return (elements + elements / value.spec.shape.back() * gap) * size_of(dtype);
}

}  // namespace lockstep
