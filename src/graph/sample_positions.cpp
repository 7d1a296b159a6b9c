#include "graph/sample_positions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "lockstep/data_set.hpp"
#include "lockstep/op.hpp"

namespace lockstep {

namespace {

/// Of a value that is made of the input's positions.
struct Positions {
  std::size_t axis = 1;
  std::int64_t shift = 0;       ///< where the input's first position is now
  const Node* mover = nullptr;  ///< who moved them last
  bool reversed = false;        ///< the last one comes first, padding with them
  bool lost = false;            ///< they are no single run any more
  bool are_own() const { return !lost && !reversed && shift == 0 && axis == 1; }
  bool are_like(const Positions& other) const {
    return !lost && !other.lost && axis == other.axis && shift == other.shift && reversed == other.reversed;
  }
};

/// Follows positions through the graph, node by node.
class PositionWalk {
 public:
  explicit PositionWalk(const Graph& graph) : graph_(graph), found_(graph.values.size()) {
    for (const ValueId id : graph.inputs) {
      if (graph.at(id).spec.shape.size() > 1) found_[id] = Positions{};
    }
    for (const Node& node : graph.nodes) {
      if (node.inputs.empty()) continue;
      const auto positions = after(node);
      for (const ValueId id : node.outputs) found_[id] = positions;
    }
  }

  const std::optional<Positions>& of(ValueId id) const { return found_[id]; }

 private:
  const Shape& shape(ValueId id) const { return graph_.at(id).spec.shape; }

  std::optional<Positions> after(const Node& node) const {
    const std::string& op = node.op->name;
    if (op == "attention" || op == "matmul") return kept(node, node.inputs[0]);  // the queries'
    if (op == "concat") return joined(node);
    std::optional<Positions> all;
    for (const ValueId id : node.inputs) {
      const auto& one = of(id);
      if (!one) continue;
      auto now = moved(node, id);
      const bool differ = all && !all->lost && !now->lost && !all->are_like(*now);
      if (!all || now->lost || differ) all = now;
      if (differ) all = lost(node);
    }
    return all;
  }

  /// Along the same dimension, if the node leaves it as it is.
  std::optional<Positions> kept(const Node& node, ValueId id) const {
    const auto& before = of(id);
    if (!before || before->lost) return before;
    const Shape &in = shape(id), &out = shape(node.outputs.front());
    const std::size_t axis = before->axis;
    const bool mixes = !node.parameters.empty() && axis + 1 == in.size() && in.size() == out.size();  // linear, norms
    const bool same = !mixes && out.size() > axis && std::equal(in.begin() + 1, in.begin() + axis + 1, out.begin() + 1);
    return same ? before : out.size() < 2 ? std::nullopt : std::optional(lost(node));
  }

  std::optional<Positions> moved(const Node& node, ValueId id) const {
    Positions now = *of(id);
    if (now.lost) return now;
    const std::string& op = node.op->name;
    if (op == "class_token" && now.axis == 1) return shifted(now, node, 1);
    if (op == "reverse" && node.inputs.size() < 2 && now.axis == 1) {  // twice, in a recurrent layer of both directions
      now.reversed = !now.reversed;
      now.mover = &node;
      return now;
    }
    if (op == "transpose") {
      const auto order = node.attributes.integers("order");
      const auto at = std::find(order.begin(), order.end(), static_cast<std::int64_t>(now.axis));
      if (at == order.end()) return lost(node);
      now.axis = static_cast<std::size_t>(at - order.begin()) + 1;
      return now;
    }
    if (op == "slice" && axis_of(node, shape(id).size()) == now.axis) {
      const std::int64_t begin = node.attributes.integer("begin"), size = shape(id)[now.axis];
      return shifted(now, node, begin < 0 ? -(begin + size) : -begin);
    }
    return kept(node, id);
  }

  /// Parts before the positions shift them; those behind them would count as padding.
  std::optional<Positions> joined(const Node& node) const {
    const auto is_known = [&](ValueId id) { return of(id).has_value(); };
    const auto first = std::find_if(node.inputs.begin(), node.inputs.end(), is_known);
    if (first == node.inputs.end()) return std::nullopt;
    const Positions before = *of(*first);
    if (before.lost) return before;
    if (axis_of(node, shape(*first).size()) != before.axis) {
      const bool alike = std::all_of(node.inputs.begin(), node.inputs.end(),
                                     [&](ValueId id) { return !of(id) || of(id)->are_like(before); });
      return alike ? before : lost(node);
    }
    if (first + 1 != node.inputs.end()) return lost(node);
    std::int64_t ahead = 0;
    for (auto id = node.inputs.begin(); id != first; ++id) ahead += shape(*id)[before.axis];
    return shifted(before, node, ahead);
  }

  static Positions shifted(Positions now, const Node& node, std::int64_t by) {
    if (by != 0 && now.reversed) return lost(node);
    now.shift += by;
    if (by != 0) now.mover = &node;
    return now;
  }
  static Positions lost(const Node& node) { return {.mover = &node, .lost = true}; }
  static std::size_t axis_of(const Node& node, std::size_t dimensions) {
    const std::int64_t axis = node.attributes.integer("axis");
    return axis < 0 ? axis + static_cast<std::int64_t>(dimensions) : axis;
  }

  const Graph& graph_;
  std::vector<std::optional<Positions>> found_;
};

/// The lengths that a layer reads, its last input; -1: none.
ValueId lengths_of(const Graph& graph, const Node& node) {
  if (node.inputs.size() < 2 || node.op->kind != OpKind::layer) return -1;
  const Value& last = graph.at(node.inputs.back());
  return last.role == Role::input && last.spec.dtype == DType::i32 && last.spec.shape.size() == 1 ? node.inputs.back()
                                                                                                  : -1;
}

/// The values that they are of: an attention's keys.
ValueId measured(const Node& node) {
  return node.inputs.size() > 3 ? node.inputs[1] : node.inputs[0];
}

}  // namespace

std::string misplaced_lengths(const Graph& graph) {
  const PositionWalk walk(graph);
  for (const Node& node : graph.nodes) {
    const ValueId lengths = lengths_of(graph, node);
    if (lengths < 0) continue;
    const auto& positions = walk.of(measured(node));
    if (!positions || positions->are_own() || positions->mover == nullptr) continue;
    return fmt::format(
        "layer '{0}' reads '{1}' to leave out padding, but behind layer '{2}' the positions are no longer the input's, "
        "so others would be left out; put '{2}' behind '{0}', or leave out '{1}'",
        node.name, graph.at(lengths).name, positions->mover->name);
  }
  return "";
}

std::string padding_counted(const Graph& graph) {
  const auto reads = [&](const Node& node) {
    const ValueId lengths = lengths_of(graph, node);
    return lengths >= 0 && graph.at(lengths).name == kLength;
  };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), reads)) return "";
  const PositionWalk walk(graph);
  for (const Node& node : graph.nodes) {
    const std::string& op = node.op->name;
    const bool of_axis = op == "mean" || op == "max";
    if ((!of_axis && op != "global_pool" && op != "last") || node.inputs.size() > 1) continue;
    const auto& positions = walk.of(node.inputs[0]);
    if (!positions || !positions->are_own()) continue;
    const std::int64_t axis = of_axis ? node.attributes.integer("axis") : 1;
    const std::int64_t dimensions = graph.at(node.inputs[0]).spec.shape.size();
    if ((axis < 0 ? axis + dimensions : axis) == 1) return node.name;
  }
  return "";
}

}  // namespace lockstep
