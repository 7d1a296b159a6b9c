#include "graph/cut.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "core/nearest.hpp"
#include "core/round_up.hpp"
#include "graph/branches.hpp"
#include "graph/even_runs.hpp"
#include "graph/fail_at.hpp"
#include "graph/gradient_flow.hpp"
#include "graph/parts.hpp"
#include "graph/workload.hpp"
#include "lockstep/error.hpp"
#include "lockstep/op.hpp"

namespace lockstep {

namespace {

constexpr double kSlack = 0.02;  ///< costs are not times: parts that differ by less count as even

// In floating-point operations, or in elements if an op counts none; a view costs nothing.
std::vector<double> costs_of_nodes(const Graph& graph) {
  const GradientFlow flow = gradient_flow(graph);
  std::vector<double> costs;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const Cost cost = cost_of(graph, node);
    double sum = cost.forward_flops + (flow.backward[n] ? cost.backward_flops : 0);
    for (const ValueId id : node.outputs) {
      if (!node.op->cost && !node.op->view) sum += graph.at(id).spec.elements();
    }
    costs.push_back(sum);
  }
  return costs;
}

std::vector<double> costs_of_parts(const std::vector<double>& costs, const std::vector<int>& part_of_node) {
  std::vector<double> sums;
  for (std::size_t n = 0; n < costs.size(); ++n) {
    const std::size_t part = part_of_node[n];
    if (part >= sums.size()) sums.resize(part + 1);
    sums[part] += costs[n];
  }
  return sums;
}

// By node: bytes that are made before it and read by it or later nodes.
std::vector<double> bytes_across(const Graph& graph) {
  std::vector<std::int32_t> last(graph.values.size(), -1);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId id : graph.nodes[n].inputs) last[id] = n;
  }
  std::vector<double> bytes(graph.nodes.size() + 1);  // by node: first the difference from the previous node
  for (std::size_t id = 0; id < last.size(); ++id) {
    const Value& value = graph.values[id];
    if (value.producer < 0 || last[id] <= value.producer) continue;
    const double size = value.spec.bytes();
    bytes[static_cast<std::size_t>(value.producer) + 1] += size;
    bytes[static_cast<std::size_t>(last[id]) + 1] -= size;
  }
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  bytes.pop_back();
  return bytes;
}

// The first node of loss and metrics, i.e. the end of the model itself.
std::size_t end_of_model(const Graph& graph) {
  const auto end = std::find_if(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return node.op->kind == OpKind::loss || node.op->kind == OpKind::metric;
  });
  return end - graph.nodes.begin();
}

Row row_to_cut(const Graph& graph, const std::vector<double>& costs) {
  Row row{costs, bytes_across(graph)};
  const std::size_t end = end_of_model(graph);
  for (std::size_t n = 1; n < row.seams.size(); ++n) {
    if (n >= end || graph.nodes[n].op->view) row.seams[n] = std::numeric_limits<double>::infinity();
  }
  return row;
}

std::vector<int> cut_by_cost(const Graph& graph, const std::vector<double>& costs, std::int64_t parts, int ranks) {
  const Row row = row_to_cut(graph, costs);
  const auto most =
      std::count_if(row.seams.begin() + 1, row.seams.end(), [](double seam) { return std::isfinite(seam); });
  return even_runs(row, std::min<std::int64_t>({parts, ranks, most + 1}), ranks, kSlack);
}

// The names by which `until` can refer to a node: its block, its own name, and the names of layers that lowering has
// fused into it, which its outputs still have.
std::vector<std::string> names_of(const Graph& graph, const Node& node) {
  std::vector<std::string> names;
  if (!node.block.empty()) names.push_back(node.block);
  names.push_back(node.name);
  for (const ValueId id : node.outputs) names.push_back(graph.at(id).name);
  return names;
}

// The node after the last one of the block or layer.
std::size_t end_of(const Graph& graph, const PartOptions& part) {
  std::vector<std::string> known;
  for (std::size_t n = end_of_model(graph); n-- > 0;) {
    const std::vector<std::string> names = names_of(graph, graph.nodes[n]);
    if (std::find(names.begin(), names.end(), part.until) != names.end()) return n + 1;
    known.insert(known.end(), names.begin(), names.end());
  }
  fail_at(part.place, fmt::format("until: expected a block or layer of the model, found '{}'{}", part.until,
                                  did_you_mean(part.until, known)));
}

std::vector<int> cut_by_hand(const Graph& graph, const std::vector<PartOptions>& cuts) {
  std::vector<int> part_of_node(graph.nodes.size(), static_cast<int>(cuts.size()) - 1);
  std::size_t begin = 0;
  for (std::size_t p = 0; p + 1 < cuts.size(); ++p) {
    const std::size_t end = end_of(graph, cuts[p]);
    if (end <= begin) {
      fail_at(cuts[p].place,
              fmt::format("until: expected a block or layer after '{}', with which the part before ends, "
                          "found '{}'",
                          cuts[p - 1].until, cuts[p].until));
    }
    if (end == end_of_model(graph)) {
      fail_at(cuts[p].place, fmt::format("until: expected a block or layer with others after it, found '{}', the last "
                                         "one; leave out the last part",
                                         cuts[p].until));
    }
    std::fill(part_of_node.begin() + begin, part_of_node.begin() + end, static_cast<int>(p));
    begin = end;
  }
  return part_of_node;
}

// Renumbers parts so that no part reads a later one; among those that could come next, in their present order.
std::vector<int> in_order(const Graph& graph, std::vector<int> part_of_node, std::size_t count) {
  std::vector<std::vector<bool>> reads(count, std::vector<bool>(count));
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const std::size_t reader = part_of_node[n];
    for (const ValueId id : graph.nodes[n].inputs) {
      const std::int32_t producer = graph.at(id).producer;
      if (producer < 0) continue;
      const std::size_t from = part_of_node[producer];
      if (from != reader) reads[reader][from] = true;
    }
  }
  std::vector<int> number(count, -1);
  for (std::size_t next = 0; next < count; ++next) {
    for (std::size_t p = 0; p < count; ++p) {
      bool ready = number[p] < 0;
      for (std::size_t from = 0; from < count; ++from) ready = ready && !(reads[p][from] && number[from] < 0);
      if (!ready) continue;
      number[p] = next;
      break;
    }
  }
  for (int& part : part_of_node) part = number[part];
  return part_of_node;
}

std::vector<int> cut_by_name(const Graph& graph) {
  std::vector<std::string> names;
  std::vector<int> part_of_node;
  int part = 0;
  for (const Node& node : graph.nodes) {
    if (!node.part.empty()) {
      const auto known = std::find(names.begin(), names.end(), node.part);
      part = known - names.begin();
      if (known == names.end()) names.push_back(node.part);
    }
    part_of_node.push_back(part);
  }
  check_order(graph, part_of_node, names);
  return in_order(graph, std::move(part_of_node), names.size());
}

bool names_parts(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) { return !node.part.empty(); });
}

// Merges neighbouring parts if there are more parts than ranks.
std::vector<int> merged(std::vector<int> part_of_node, const std::vector<double>& costs, int ranks) {
  Row row{costs_of_parts(costs, part_of_node), {}};
  if (row.costs.size() <= static_cast<std::size_t>(ranks)) return part_of_node;
  row.seams.resize(row.costs.size());
  const std::vector<int> number = even_runs(row, ranks, ranks);
  for (int& part : part_of_node) part = number[part];
  return part_of_node;
}

// By part; empty: not specified, or one rank computes everything.
std::vector<std::int64_t> wanted_ranks(const ParallelOptions& parallel, int ranks) {
  std::vector<std::int64_t> wanted;
  for (const PartOptions& part : parallel.cuts) {
    if (part.ranks > 0 && ranks > 1) wanted.push_back(part.ranks);
  }
  return wanted;
}

void check_ranks(const ParallelOptions& parallel, int ranks) {
  const std::vector<std::int64_t> wanted = wanted_ranks(parallel, ranks);
  const std::int64_t sum = std::accumulate(wanted.begin(), wanted.end(), std::int64_t{0});
  if (wanted.empty() || sum == ranks) return;
  fail_at(parallel.place, fmt::format("expected {} ranks, as the parts say, found {}; start with --ranks {}, or leave "
                                      "out `ranks`",
                                      sum, ranks, sum));
}

void check_micro_batches(const ParallelOptions& parallel, std::int64_t parts, int ranks, std::int64_t micro_batches) {
  for (const std::int64_t wanted : wanted_ranks(parallel, ranks)) {
    if (wanted <= micro_batches) continue;
    fail_at(parallel.place,
            fmt::format("ranks: expected at most as many for a part as the job has micro-batches, {}, found {}",
                        micro_batches, wanted));
  }
  if (divide_up<std::int64_t>(ranks, parts) <= micro_batches) return;
  fail_at(parallel.place,
          fmt::format("expected at most as many ranks for a part as the job has micro-batches, found {} ranks "
                      "for {} of {} micro-batches; start with --ranks {}, or set micro_batches to a larger divisor of "
                      "batch_size",
                      ranks, parts == 1 ? "one part" : fmt::format("{} parts", parts), micro_batches,
                      parts * micro_batches));
}

std::vector<int> cut(const Graph& graph, const std::vector<double>& costs, const ParallelOptions& parallel, int ranks) {
  check_ranks(parallel, ranks);
  if (parallel.branches) return parts_of_branches(graph, costs, parallel.place, ranks);
  if (!parallel.cuts.empty()) return merged(cut_by_hand(graph, parallel.cuts), costs, ranks);
  if (names_parts(graph)) return merged(cut_by_name(graph), costs, ranks);
  return cut_by_cost(graph, costs, parallel.parts, ranks);
}

}  // namespace

bool is_cut_by_cost(const Graph& graph, const ParallelOptions& parallel) {
  return !parallel.branches && parallel.cuts.empty() && !names_parts(graph);
}

Row row_to_cut(const Graph& graph) {
  return row_to_cut(graph, costs_of_nodes(graph));
}

std::vector<int> cut(const Graph& graph, const ParallelOptions& parallel, int ranks) {
  return cut(graph, costs_of_nodes(graph), parallel, ranks);
}

std::vector<std::vector<int>> ranks_of_parts(const std::vector<double>& costs, const std::vector<std::int64_t>& wants,
                                             int ranks, std::int64_t micro_batches) {
  const std::vector<int> counts =
      wants.empty() ? ranks_by_cost(costs, ranks, micro_batches) : std::vector<int>(wants.begin(), wants.end());
  LOCKSTEP_CHECK(counts.size() == costs.size() && std::accumulate(counts.begin(), counts.end(), 0) == ranks,
                 "each rank has one part");
  std::vector<std::vector<int>> lists;
  int next = 0;
  for (const int count : counts) {
    std::vector<int>& list = lists.emplace_back(static_cast<std::size_t>(count));
    std::iota(list.begin(), list.end(), next);
    next += count;
  }
  return lists;
}

Placement place_parts(const Graph& graph, const ParallelOptions& parallel, int ranks, std::int64_t micro_batches) {
  const std::vector<double> costs = costs_of_nodes(graph);
  Placement placement{cut(graph, costs, parallel, ranks), {}};
  const std::vector<double> of_parts = costs_of_parts(costs, placement.part_of_node);
  check_micro_batches(parallel, static_cast<std::int64_t>(of_parts.size()), ranks, micro_batches);
  placement.ranks_of_part = ranks_of_parts(of_parts, wanted_ranks(parallel, ranks), ranks, micro_batches);
  return placement;
}

}  // namespace lockstep
