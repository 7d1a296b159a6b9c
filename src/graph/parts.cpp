#include "graph/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "lockstep/error.hpp"
#include "lockstep/op.hpp"

namespace lockstep {

namespace {

/// A use of a value that contributes to its gradient.
struct Use {
  std::int32_t node = 0;
  int part = 0;
};

class Splitter {
 public:
  Splitter(const Graph& graph, const std::vector<int>& part_of_node)
      : graph_(graph), part_of_node_(part_of_node), flow_(gradient_flow(graph)) {
    LOCKSTEP_CHECK(part_of_node.size() == graph.nodes.size(), "a part for each node");
    const int count = 1 + *std::max_element(part_of_node.begin(), part_of_node.end());
    parts_.resize(count);
    local_.assign(parts_.size(), std::vector<ValueId>(graph.values.size(), -1));
  }

  std::vector<GraphPart> run() {
    check_order(graph_, part_of_node_);
    find_uses();
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) add_node(n);
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      if (parts_[p].nodes.empty()) throw Error(ExitCode::configuration, fmt::format("part {} has no layer", p));
    }
    for (std::size_t p = 0; p < parts_.size(); ++p) connect(p);
    return std::move(parts_);
  }

 private:
  GraphPart& part(int number) { return parts_[number]; }
  static Value& value_of(GraphPart& part, ValueId id) { return part.graph.values[id]; }
  int part_of(std::int32_t node) const { return part_of_node_[node]; }
  ValueId& local(int part, ValueId id) { return local_[part][id]; }

  void find_uses() {
    uses_.resize(graph_.values.size());
    for (auto n = static_cast<std::int32_t>(graph_.nodes.size()) - 1; n >= 0; --n) {
      const Node& node = graph_.nodes[n];
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (!adds_gradient(graph_, flow_, n, i)) continue;
        uses_[node.inputs[i]].push_back({n, part_of(n)});
      }
    }
  }

  // The part's own id of a value, which is copied into the part when it is first read.
  ValueId import(int number, ValueId id) {
    ValueId& mine = local(number, id);
    if (mine >= 0) return mine;
    Graph& graph = part(number).graph;
    Value value = graph_.at(id);
    const bool received = value.producer >= 0;
    value.producer = -1;
    mine = graph.values.size();
    graph.values.push_back(std::move(value));
    if (received) part(number).boundary.received.push_back({mine, 0});
    return mine;
  }

  void add_node(std::size_t n) {
    const int number = part_of_node_[n];
    GraphPart& to = part(number);
    Node node = graph_.nodes[n];
    const std::int32_t index = to.graph.nodes.size();
    const auto import_all = [&](std::vector<ValueId>& ids) {
      for (ValueId& id : ids) id = import(number, id);
    };
    import_all(node.inputs);
    import_all(node.parameters);
    import_all(node.states);
    for (ValueId& id : node.outputs) {
      ValueId& mine = local(number, id);
      mine = to.graph.values.size();
      to.graph.values.push_back(graph_.at(id));
      to.graph.values.back().producer = index;
      if (id == graph_.output) to.graph.output = mine;
      id = mine;
    }
    if (static_cast<std::int32_t>(n) == graph_.loss) to.graph.loss = index;
    to.graph.nodes.push_back(std::move(node));
    to.nodes.push_back(n);
  }

  // The part's own index of its first node that comes after this node of the whole graph.
  [[nodiscard]] static std::int32_t first_after(const GraphPart& part, std::int32_t node) {
    return std::upper_bound(part.nodes.begin(), part.nodes.end(), node) - part.nodes.begin();
  }

  void connect(int number) {
    GraphPart& to = part(number);
    fill_lists(to, number);
    for (std::size_t n = 0; n < graph_.values.size(); ++n) {
      const ValueId id = n;
      const std::int32_t producer = graph_.at(id).producer;
      if (producer >= 0 && part_of(producer) == number) send(number, id);
    }
  }

  // Fills what the part has of the whole graph, in its order: inputs, parameters, states, metrics, and the gradient
  // flow.
  void fill_lists(GraphPart& to, int number) {
    const auto list = [&](const std::vector<ValueId>& whole, std::vector<ValueId>& own,
                          std::vector<std::size_t>& index) {
      for (std::size_t i = 0; i < whole.size(); ++i) {
        const ValueId mine = local(number, whole[i]);
        if (mine < 0) continue;
        own.push_back(mine);
        index.push_back(i);
      }
    };
    list(graph_.inputs, to.graph.inputs, to.inputs);
    list(graph_.parameters, to.graph.parameters, to.parameters);
    list(graph_.states, to.graph.states, to.states);
    for (const std::int32_t metric : graph_.metrics) {
      if (part_of(metric) == number) to.graph.metrics.push_back(first_after(to, metric) - 1);
    }
    GradientFlow& flow = to.boundary.flow;
    flow.wanted.resize(to.graph.values.size());
    for (std::size_t id = 0; id < graph_.values.size(); ++id) {
      const ValueId mine = local(number, id);
      if (mine >= 0) flow.wanted[mine] = flow_.wanted[id];
    }
    for (const std::int32_t n : to.nodes) flow.backward.push_back(flow_.backward[n]);
    to.received_from.resize(to.boundary.received.size());
  }

  // Links a value to the parts that read it: the value in one direction, gradients in the other.
  void send(int number, ValueId id) {
    GraphPart& from = part(number);
    // by part: index in its `received`
    std::vector<std::size_t> received(parts_.size(), std::numeric_limits<std::size_t>::max());
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const ValueId theirs = local(p, id);
      if (theirs < 0 || static_cast<int>(p) == number) continue;
      for (Value* value : {&value_of(from, local(number, id)), &value_of(parts_[p], theirs)}) {
        value->rounded_gradient = {};  // what is sent is like the value
      }
      if (from.boundary.sent.empty() || from.boundary.sent.back() != local(number, id)) {
        from.boundary.sent.push_back(local(number, id));
      }
      auto& list = parts_[p].boundary.received;
      const auto entry =
          std::find_if(list.begin(), list.end(), [&](const auto& other) { return other.value == theirs; });
      received[p] = entry - list.begin();
      entry->sum_from = std::numeric_limits<std::int32_t>::max();
      parts_[p].received_from.resize(list.size());
      parts_[p].received_from[received[p]] = {number, from.boundary.sent.size() - 1, 0};
    }
    const std::vector<Use>& uses = uses_[id];
    std::vector<std::size_t> terms(parts_.size());
    for (std::size_t u = 0; u < uses.size(); ++u) {
      const std::int32_t node = uses[u].node;
      const int user = uses[u].part;
      if (user == number) continue;
      const std::size_t p = user;
      const bool first = std::all_of(uses.begin(), uses.begin() + u, [&](const Use& use) { return use.part == user; });
      if (first) parts_[p].boundary.received[received[p]].sum_from = first_after(parts_[p], node) - 1;
      if (first && u > 0) continue;  // it is part of the sum that another arrival brings
      from.boundary.arrivals.push_back({local(number, id), first_after(from, node)});
      from.arrives_from.push_back({user, received[p], terms[p]++});
    }
  }

  const Graph& graph_;
  const std::vector<int>& part_of_node_;
  GradientFlow flow_;
  std::vector<GraphPart> parts_;
  std::vector<std::vector<ValueId>> local_;  // by part and value of the whole graph; -1: not in the part
  std::vector<std::vector<Use>> uses_;       // by value, in the order in which their gradients are added
};

/// From one part to another.
struct Edge {
  std::int32_t from = -1, to = -1;  ///< the first nodes that cause it; -1: there is no edge
};

std::vector<std::vector<Edge>> edges_of(const Graph& graph, const std::vector<int>& part_of_node) {
  const std::size_t count = 1 + *std::max_element(part_of_node.begin(), part_of_node.end());
  std::vector<std::vector<Edge>> edges(count, std::vector<Edge>(count));  // by part that is read and part that reads
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId id : graph.nodes[n].inputs) {
      const std::int32_t from = graph.at(id).producer;
      if (from < 0) continue;
      const std::size_t a = part_of_node[from];
      const std::size_t b = part_of_node[n];
      Edge& edge = edges[a][b];
      if (a != b && edge.from < 0) edge = {from, static_cast<std::int32_t>(n)};
    }
  }
  return edges;
}

}  // namespace

// Two parts wait for each other if each reads what the other makes, directly or through other parts.
void check_order(const Graph& graph, const std::vector<int>& part_of_node, const std::vector<std::string>& names) {
  const std::vector<std::vector<Edge>> edges = edges_of(graph, part_of_node);
  const std::size_t count = edges.size();
  std::vector<std::vector<bool>> reaches(count, std::vector<bool>(count));
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count; ++b) reaches[a][b] = edges[a][b].from >= 0;
  }
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = 0; b < count; ++b) reaches[a][b] = reaches[a][b] || (reaches[a][k] && reaches[k][b]);
    }
  }
  const auto part = [&](std::size_t p) { return names.empty() ? std::to_string(p) : "'" + names[p] + "'"; };
  const auto node = [&](std::int32_t n) -> const std::string& { return graph.nodes[n].name; };
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count; ++b) {
      const Edge& edge = edges[a][b];
      if (edge.from < 0 || !reaches[b][a]) continue;
      throw Error(ExitCode::configuration,
                  fmt::format("parts {} and {} wait for each other: '{}' of part {} reads '{}' of part {}, and "
                              "something of part {} depends on part {}; cut where nothing leads back",
                              part(a), part(b), node(edge.to), part(b), node(edge.from), part(a), part(a), part(b)));
    }
  }
}

std::vector<GraphPart> split(const Graph& graph, const std::vector<int>& part_of_node) {
  return Splitter(graph, part_of_node).run();
}

}  // namespace lockstep
