#include "run/plan/placement.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "comm/reduce/micro_batch_assignment.hpp"
#include "graph/crossings.hpp"
#include "graph/gradient_flow.hpp"
#include "graph/workload.hpp"
#include "step/exec/part_links.hpp"

namespace lockstep::plan {

namespace {

// Only the ratio of these matters.
constexpr double kFlopsASecond = 2e10;
constexpr double kBytesASecond = 2e9;

constexpr double kGain = 1e-3;       ///< of a step: a smaller gain is not worth a change
constexpr double kApartGain = 0.02;  ///< of a step: a smaller gain is not worth a different order of ranks than of
                                     ///< parts
constexpr double kMaxTasks = 2e5;    ///< simulated in all steps together: takes a fraction of a second
constexpr double kMaxOfStep = 2e4;   ///< tasks; the time of a larger step is estimated

struct Costs {
  double forward = 0, backward = 0;
};

Costs cost_of_node(const Graph& graph, const Node& node, bool has_backward) {
  const Cost cost = cost_of(graph, node);
  return {cost.forward_flops / kFlopsASecond, has_backward ? cost.backward_flops / kFlopsASecond : 0};
}

/// A cut that may move, or given parts; and the ranks that compute them.
struct State {
  std::vector<std::size_t> begins;       ///< by part: its first node; empty: the parts are given and cannot move
  std::vector<std::vector<int>> groups;  ///< by part: its ranks
};

bool follow_one_another(const State& state) {
  int next = 0;
  for (const auto& group : state.groups) {
    for (const int rank : group) {
      if (rank != next++) return false;
    }
  }
  return true;
}

class Search {
 public:
  Search(const Graph& graph, const ParallelOptions& parallel, std::vector<double> speeds, std::int64_t micro_batches)
      : graph_(graph), speeds_(std::move(speeds)), micro_batches_(micro_batches), in_flight_(parallel.in_flight) {}

  Placement run(Placement placement, bool may_move) {
    state_.groups = placement.ranks_of_part;
    may_move ? begin_with_cut(placement.part_of_node) : begin_with_parts(placement.part_of_node);
    seconds_ = settle(state_);
    try_groups(state_.groups);
    take_best();
    while (improve()) {
    }
    if (may_move) placement.part_of_node = part_of_node();
    placement.ranks_of_part = state_.groups;
    return placement;
  }

 private:
  void begin_with_parts(const std::vector<int>& part_of_node) { given_ = counted_costs(split(graph_, part_of_node)); }

  void begin_with_cut(const std::vector<int>& part_of_node) {
    const GradientFlow flow = gradient_flow(graph_);
    sums_.resize(1);
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Costs cost = cost_of_node(graph_, graph_.nodes[n], flow.backward[n]);
      sums_.push_back({sums_.back().forward + cost.forward, sums_.back().backward + cost.backward});
      if (n == 0 || part_of_node[n] != part_of_node[n - 1]) state_.begins.push_back(n);
    }
    bytes_ = row_to_cut(graph_).seams;
    for (std::size_t n = 1; n < bytes_.size(); ++n) {
      if (std::isfinite(bytes_[n])) seams_.push_back(n);
    }
  }

  std::vector<balance::PartCost> costs_of(const State& state) const {
    if (state.begins.empty()) return given_;
    std::vector<balance::PartCost> costs;
    for (std::size_t p = 0; p < state.begins.size(); ++p) {
      const std::size_t begin = state.begins[p], end = end_of(state, p);
      balance::PartCost& cost = costs.emplace_back();
      cost.forward = std::max(1 / kFlopsASecond, sums_[end].forward - sums_[begin].forward);
      cost.backward = std::max(1 / kFlopsASecond, sums_[end].backward - sums_[begin].backward);
      if (p > 0) cost.reads = {static_cast<int>(p) - 1};
      if (p > 0) cost.receive = bytes_[begin] / kBytesASecond;
    }
    return costs;
  }

  std::size_t end_of(const State& state, std::size_t part) const {
    return part + 1 < state.begins.size() ? state.begins[part + 1] : graph_.nodes.size();
  }

  std::vector<double> speeds_of(const std::vector<int>& ranks) const {
    std::vector<double> speeds;
    for (const int rank : ranks) speeds.push_back(speeds_[rank]);
    return speeds;
  }

  double step_seconds(const State& state) {
    balance::PipelineSetup setup{
        .parts = costs_of(state), .rank_of_micro_batch = {}, .speeds = speeds_, .in_flight = 0};
    const int parts = setup.parts.size();
    if (2.0 * micro_batches_ * parts > kMaxOfStep) {
      tasks_ += parts;
      return estimate(setup.parts, state.groups);
    }
    setup.in_flight = in_flight_ > 0 ? static_cast<int>(in_flight_) : exec::default_in_flight(state.groups);
    for (const auto& group : state.groups) {
      const auto placed = comm::place_micro_batches(comm::counts_by_weights(micro_batches_, speeds_of(group)));
      auto& rank_of = setup.rank_of_micro_batch.emplace_back(static_cast<std::size_t>(micro_batches_));
      for (std::size_t r = 0; r < group.size(); ++r) {
        for (const int micro_batch : placed.micro_batches_of_rank[r]) rank_of[micro_batch] = group[r];
      }
    }
    tasks_ += 2.0 * micro_batches_ * parts;
    return balance::schedule(setup).seconds;
  }

  /// No rank begins before its first micro-batch has passed the parts before, nor ends before its last gradient has
  /// gone back through them.
  double estimate(const std::vector<balance::PartCost>& parts, const std::vector<std::vector<int>>& groups) {
    std::vector<double> passed(parts.size());
    double seconds = 0;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      for (const int read : parts[p].reads) {
        const std::size_t r = read;
        passed[p] = std::max(passed[p], passed[r] + parts[r].forward + parts[r].backward + 2 * parts[p].receive);
      }
      seconds = std::max(seconds, passed[p] + (parts[p].forward + parts[p].backward) * slowest(groups[p]));
    }
    return seconds;
  }

  /// How long the slowest of these ranks takes for its micro-batches of a part with unit cost.
  double slowest(const std::vector<int>& ranks) {
    const auto [known, is_new] = slowest_.try_emplace(ranks, 0.0);
    if (!is_new) return known->second;
    tasks_ += micro_batches_ / 16.0;  // takes as long as the simulation of so many
    const std::vector<double> speeds = speeds_of(ranks);
    const std::vector<int> counts = comm::counts_by_weights(micro_batches_, speeds);
    for (std::size_t r = 0; r < counts.size(); ++r) known->second = std::max(known->second, counts[r] / speeds[r]);
    return known->second;
  }

  /// Micro-batches per unit of time that these ranks compute of a part with unit cost.
  [[nodiscard]] double capacity(const std::vector<int>& ranks) { return micro_batches_ / slowest(ranks); }

  /// Cuts the model where parts are closest to being proportional to the capacity of their ranks.
  [[nodiscard]] State cut_anew(std::vector<std::vector<int>> groups) {
    State state{state_.begins, std::move(groups)};
    const std::size_t parts = state.begins.size();
    std::vector<double> capacities;
    for (std::size_t p = 0; p < parts; ++p) capacities.push_back(capacity(state.groups[p]));
    const double all = std::accumulate(capacities.begin(), capacities.end(), 0.0);
    double before = 0;
    std::size_t first = 0;  // of the remaining seams
    for (std::size_t p = 1; p < parts; ++p) {
      before += capacities[p - 1] / all * cost_before(graph_.nodes.size());
      std::size_t best = first;
      for (std::size_t s = first; s + (parts - 1 - p) < seams_.size(); ++s) {
        if (std::abs(cost_before(seams_[s]) - before) < std::abs(cost_before(seams_[best]) - before)) best = s;
      }
      state.begins[p] = seams_[best];
      first = best + 1;
    }
    return state;
  }

  double cost_before(std::size_t node) const { return sums_[node].forward + sums_[node].backward; }

  /// Moves cuts as long as this shortens a step.
  double settle(State& state) {
    double seconds = step_seconds(state);
    for (bool moved = !state.begins.empty(); moved && tasks_ < kMaxTasks;) {
      moved = false;
      for (std::size_t p = 1; p < state.begins.size(); ++p) {
        for (const std::size_t begin : places_of_cut(state, p)) {
          State other = state;
          other.begins[p] = begin;
          const double others = step_seconds(other);
          if (others >= seconds * (1 - kGain)) continue;
          state = std::move(other);
          seconds = others;
          moved = true;
        }
      }
    }
    return seconds;
  }

  /// Alternatives for the beginning of part p, at increasing distances from the current one.
  std::vector<std::size_t> places_of_cut(const State& state, std::size_t p) const {
    std::vector<std::size_t> places;
    const auto at = std::lower_bound(seams_.begin(), seams_.end(), state.begins[p]) - seams_.begin();
    for (std::ptrdiff_t by = 1; by < std::ssize(seams_); by *= 2) {
      for (const std::ptrdiff_t to : {at - by, at + by}) {
        if (to < 0 || to >= std::ssize(seams_)) continue;
        const std::size_t begin = seams_[to];
        if (begin > state.begins[p - 1] && begin < end_of(state, p)) places.push_back(begin);
      }
    }
    return places;
  }

  /// Settles a state's cuts, and keeps it if it is sufficiently better than the best one of this round.
  void try_state(State state) {
    const double seconds = settle(state);
    const bool apart = follow_one_another(state_) && !follow_one_another(state);
    const double limit = std::min(seconds_ * (1 - (apart ? kApartGain : kGain)), best_ ? best_seconds_ : seconds_);
    if (seconds >= limit) return;
    best_seconds_ = seconds;
    best_ = std::move(state);
  }

  bool improve() {
    move_ranks();
    swap_ranks();
    return take_best();
  }

  bool take_best() {
    if (!best_) return false;
    state_ = *std::exchange(best_, std::nullopt);
    seconds_ = best_seconds_;
    return true;
  }

  void try_groups(const std::vector<std::vector<int>>& groups) {
    if (tasks_ <= kMaxTasks) try_state(cut_anew(groups));
  }

  /// One of each speed. Of ranks of one speed, only the first and the last may leave a group without leaving a gap.
  std::vector<std::size_t> to_try(const std::vector<int>& group, bool last) const {
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < group.size(); ++i) {
      const auto same = [&](int other) { return speed(other) == speed(group[i]); };
      const auto at = group.begin() + i;
      if (std::none_of(group.begin(), at, same) || (last && std::none_of(at + 1, group.end(), same)))
        chosen.push_back(i);
    }
    return chosen;
  }
  double speed(int rank) const { return speeds_[rank]; }

  void move_ranks() {
    for (std::size_t p = 0; p < state_.groups.size(); ++p) {
      for (std::size_t q = 0; q < state_.groups.size(); ++q) {
        if (p == q || state_.groups[p].size() == 1 || static_cast<int>(state_.groups[q].size()) == micro_batches_)
          continue;
        if (tasks_ > kMaxTasks) return;
        for (const std::size_t i : to_try(state_.groups[p], true)) {
          auto groups = state_.groups;
          const int rank = groups[p][i];
          groups[p].erase(groups[p].begin() + i);
          groups[q].insert(std::upper_bound(groups[q].begin(), groups[q].end(), rank), rank);
          try_groups(groups);
        }
      }
    }
  }

  void swap_ranks() {
    for (std::size_t p = 0; p < state_.groups.size(); ++p) {
      for (std::size_t q = p + 1; q < state_.groups.size(); ++q) {
        if (tasks_ > kMaxTasks) return;
        auto groups = state_.groups;
        std::swap(groups[p], groups[q]);
        try_groups(groups);
        for (const std::size_t i : to_try(state_.groups[p], false)) {
          for (const std::size_t j : to_try(state_.groups[q], false)) try_swap(p, i, q, j);
        }
      }
    }
  }

  void try_swap(std::size_t p, std::size_t i, std::size_t q, std::size_t j) {
    auto groups = state_.groups;
    if (speed(groups[p][i]) == speed(groups[q][j])) return;
    std::swap(groups[p][i], groups[q][j]);
    std::sort(groups[p].begin(), groups[p].end());
    std::sort(groups[q].begin(), groups[q].end());
    try_groups(groups);
  }

  std::vector<int> part_of_node() const {
    std::vector<int> parts;
    for (std::size_t p = 0; p < state_.begins.size(); ++p) parts.resize(end_of(state_, p), p);
    return parts;
  }

  const Graph& graph_;
  const std::vector<double> speeds_;
  const int micro_batches_;
  const std::int64_t in_flight_;
  std::vector<balance::PartCost> given_;  // if parts are given
  std::vector<Costs> sums_;               // summed over the nodes before each
  std::vector<double> bytes_;             // by node: bytes that would cross a cut before it
  std::vector<std::size_t> seams_;        // nodes that a part may begin with
  State state_;
  double seconds_ = 0, best_seconds_ = 0, tasks_ = 0;
  std::map<std::vector<int>, double> slowest_;  // by group
  std::optional<State> best_;                   // of this round
};

}  // namespace

std::vector<balance::PartCost> counted_costs(const std::vector<GraphPart>& parts) {
  std::vector<const GraphPart*> all;
  for (const GraphPart& part : parts) all.push_back(&part);
  const auto work = [&](int p, std::size_t n, bool forward) {
    const GraphPart& part = parts[p];
    const Costs cost = cost_of_node(part.graph, part.graph.nodes[n], part.boundary.flow.backward[n]);
    return forward ? cost.forward : cost.backward;
  };
  std::vector<balance::PartCost> costs;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const int number = p;
    balance::PartCost& cost = costs.emplace_back();
    cost.forward = cost.backward = 1 / kFlopsASecond;
    for (std::size_t n = 0; n < parts[p].graph.nodes.size(); ++n) {
      cost.forward += work(number, n, true);
      cost.backward += work(number, n, false);
    }
    for (const Crossing& crossing : crossings_of(all, number, work)) {
      cost.reads.push_back(crossing.part);
      cost.overlaps.push_back({crossing.left, crossing.before, crossing.gradient_left, crossing.before_gradient});
    }
    for (const auto& received : parts[p].boundary.received) {
      cost.receive += parts[p].graph.at(received.value).spec.bytes() / kBytesASecond;
    }
  }
  return costs;
}

std::vector<double> in_proportion(std::vector<double> speeds) {
  const double slowest = *std::min_element(speeds.begin(), speeds.end());
  for (double& speed : speeds) speed = slowest > 0 ? speed / slowest : 1;
  return speeds;
}

Placement place_by_speed(const Graph& graph, const ParallelOptions& parallel, const std::vector<double>& speeds,
                         std::int64_t micro_batches) {
  Placement placement = place_parts(graph, parallel, speeds.size(), micro_batches);
  const bool known = std::all_of(speeds.begin(), speeds.end(), [](double speed) { return speed > 0; });
  const bool equal = std::adjacent_find(speeds.begin(), speeds.end(), std::not_equal_to<>()) == speeds.end();
  const bool said =
      std::any_of(parallel.cuts.begin(), parallel.cuts.end(), [](const auto& cut) { return cut.ranks > 0; });
  if (!known || equal || said || placement.ranks_of_part.size() == 1) return placement;
  return Search(graph, parallel, in_proportion(speeds), micro_batches)
      .run(std::move(placement), is_cut_by_cost(graph, parallel));
}

}  // namespace lockstep::plan
