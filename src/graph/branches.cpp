#include "graph/branches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "graph/fail_at.hpp"
#include "lockstep/error.hpp"
#include "lockstep/op.hpp"

namespace lockstep {

namespace {

constexpr double kWorth = 0.05;  ///< of the model's cost: a smaller part is not worth its communication

using Nodes = std::vector<std::size_t>;

struct Branch {
  Nodes nodes;
  double cost = 0;
};

/// One way to divide a model: nodes before the fork, branches, nodes after the join.
struct Region {
  std::vector<bool> before, after;  ///< by node
  std::vector<Branch> branches;     ///< everything in between, the costliest first

  /// What is saved if all branches are computed concurrently.
  double saved() const {
    double sum = 0;
    for (std::size_t i = 1; i < branches.size(); ++i) sum += branches[i].cost;
    return sum;
  }
  std::size_t worth(double total) const {
    const auto is_worth = [&](const Branch& branch) { return branch.cost >= kWorth * total; };
    return std::count_if(branches.begin(), branches.end(), is_worth);
  }
};

class BranchFinder {
 public:
  BranchFinder(const Graph& graph, const std::vector<double>& costs)
      : graph_(graph), costs_(costs), reads_(graph.nodes.size()), readers_(graph.nodes.size()) {
    for (std::size_t n = 0; n < reads_.size(); ++n) {
      for (const ValueId id : graph.nodes[n].inputs) {
        const std::int32_t producer = graph.at(id).producer;
        if (producer < 0) continue;
        const std::size_t from = producer;
        if (std::find(reads_[n].begin(), reads_[n].end(), from) != reads_[n].end()) continue;
        reads_[n].push_back(from);
        readers_[from].push_back(n);
      }
    }
  }

  /// The region that saves most; without branches if none has at least two.
  Region best() const {
    Region best;
    double saved = 0;
    for (std::size_t join = 0; join < reads_.size(); ++join) {
      if (reads_[join].size() < 2 || !is_layer(join)) continue;
      const std::vector<bool> after = all_after(join);
      consider({std::vector<bool>(reads_.size()), after, {}}, best, saved);
      const std::vector<bool> before_join = all_before(join);
      for (std::size_t fork = 0; fork < join; ++fork) {
        if (readers_[fork].size() > 1 && before_join[fork]) consider({all_before(fork), after, {}}, best, saved);
      }
    }
    return best;
  }

 private:
  bool is_layer(std::size_t node) const {
    const OpKind kind = graph_.nodes[node].op->kind;
    return kind == OpKind::layer || kind == OpKind::fused;
  }

  // Including the node itself.
  std::vector<bool> all_before(std::size_t node) const {
    std::vector<bool> in(reads_.size());
    in[node] = true;
    for (std::size_t n = node + 1; n-- > 0;) {
      if (!in[n]) continue;
      for (const std::size_t from : reads_[n]) in[from] = true;
    }
    return in;
  }
  // Including the node itself, and loss and metrics, whatever they read.
  std::vector<bool> all_after(std::size_t node) const {
    std::vector<bool> in(reads_.size());
    in[node] = true;
    for (std::size_t n = 0; n < reads_.size(); ++n) {
      const auto is_in = [&](std::size_t from) { return in[from]; };
      if (!is_layer(n) || std::any_of(reads_[n].begin(), reads_[n].end(), is_in)) in[n] = true;
    }
    return in;
  }

  void consider(Region region, Region& best, double& saved) const {
    find_branches(region);
    const double saves = region.saved();
    if (region.branches.size() < 2 || saves < saved) return;
    if (saves == saved && !best.branches.empty()) return;
    saved = saves;
    best = std::move(region);
  }

  // Each connected component of the nodes in between is a branch.
  void find_branches(Region& region) const {
    Nodes root(reads_.size());
    std::iota(root.begin(), root.end(), std::size_t{0});
    const auto root_of = [&](std::size_t n) {
      while (root[n] != n) n = root[n] = root[root[n]];
      return n;
    };
    const auto between = [&](std::size_t n) { return !region.before[n] && !region.after[n]; };
    for (std::size_t n = 0; n < reads_.size(); ++n) {
      for (const std::size_t from : reads_[n]) {
        if (between(n) && between(from)) root[root_of(n)] = root_of(from);
      }
    }
    std::vector<Branch> by_root(reads_.size());
    for (std::size_t n = 0; n < reads_.size(); ++n) {
      if (!between(n)) continue;
      Branch& branch = by_root[root_of(n)];
      branch.nodes.push_back(n);
      branch.cost += costs_[n];
    }
    for (Branch& branch : by_root) {
      if (!branch.nodes.empty()) region.branches.push_back(std::move(branch));
    }
    std::stable_sort(region.branches.begin(), region.branches.end(),
                     [](const Branch& a, const Branch& b) { return a.cost > b.cost; });
  }

  const Graph& graph_;
  const std::vector<double>& costs_;
  std::vector<Nodes> reads_, readers_;  // by node, each once
};

[[noreturn]] void fail(const Graph& graph, const Region& region, double total, const Place& place) {
  std::string found = "found none: each layer of this model needs those before it";
  if (region.branches.size() > 1) {
    const Branch& second = region.branches[1];
    found = fmt::format(
        "found none that are worth ranks of their own: beside the largest there is '{}' to '{}' with "
        "{:.1f} % of the work",
        graph.nodes[second.nodes.front()].name, graph.nodes[second.nodes.back()].name, 100 * second.cost / total);
  }
  fail_at(place, fmt::format("expected a model with branches that do not depend on each other, {}; set parts to a "
                             "number, which cuts the model into parts that follow one another",
                             found));
}

/// Distributes branches over parts, so that each part has at least one branch and all have about the same cost.
std::vector<int> distribute(const Region& region, const std::vector<double>& costs, std::size_t worth, int parts) {
  std::vector<int> part_of_node(costs.size(), parts - 1);
  std::vector<double> load(parts);
  for (std::size_t n = 0; n < costs.size(); ++n) {
    if (region.before[n]) part_of_node[n] = 0;
    if (region.before[n]) load.front() += costs[n];
    if (region.after[n]) load.back() += costs[n];
  }
  std::vector<std::size_t> branches(load.size());  // by part: its number of branches
  for (std::size_t i = 0; i < worth; ++i) {
    const std::size_t empty = std::count(branches.begin(), branches.end(), std::size_t{0});
    const bool to_empty = worth - i == empty;
    std::size_t least = load.size();
    for (std::size_t p = 0; p < load.size(); ++p) {
      if (to_empty && branches[p] > 0) continue;
      if (least == load.size() || load[p] < load[least]) least = p;
    }
    for (const std::size_t n : region.branches[i].nodes) part_of_node[n] = least;
    load[least] += region.branches[i].cost;
    ++branches[least];
  }
  return part_of_node;
}

}  // namespace

std::vector<int> parts_of_branches(const Graph& graph, const std::vector<double>& costs, const Place& place,
                                   int ranks) {
  const double total = std::accumulate(costs.begin(), costs.end(), 0.0);
  const Region region = BranchFinder(graph, costs).best();
  const std::size_t worth = region.worth(total);
  if (worth < 2) fail(graph, region, total, place);
  return distribute(region, costs, worth, std::min(ranks, static_cast<int>(worth)));
}

}  // namespace lockstep
