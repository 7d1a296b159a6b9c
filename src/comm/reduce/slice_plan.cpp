#include "comm/reduce/slice_plan.hpp"

#include <map>
#include <utility>

namespace lockstep::comm {

namespace {

using Place = SlicePlan::Place;

/// Makes one rank's plan of one bucket.
class Planner {
 public:
  Planner(const Hosts& hosts, const SumsOfHosts& sums, int rank, std::span<const std::int64_t> bounds)
      : hosts_(hosts), sums_(sums), rank_(rank), host_(hosts.host_of(rank)), bounds_(bounds) {
    for (const HostSum& sum : own_sums()) {
      for (const Partial& part : sum.parts) partials_.emplace(std::pair(part.rank, part.root), part.node);
    }
    plan_.first = bounds[static_cast<std::size_t>(rank)];
    plan_.own.count = slice(rank);
  }

  SlicePlan make(const Tree& tree) {
    for (int owner = 0; owner + 1 < static_cast<int>(bounds_.size()); ++owner) {
      if (slice(owner) == 0) continue;
      const int leader = hosts_.leader(host_, owner);
      if (leader != rank_) {
        give(owner, leader);
      } else if (owner == rank_) {
        gather_own();
      } else {
        gather_for(owner);
      }
    }
    if (slice(rank_) > 0) finish_own(tree);
    return std::move(plan_);
  }

 private:
  [[nodiscard]] const std::vector<HostSum>& own_sums() const { return sums_[static_cast<std::size_t>(host_)]; }
  [[nodiscard]] std::int64_t start(int owner) const { return bounds_[static_cast<std::size_t>(owner)]; }
  [[nodiscard]] std::int64_t slice(int owner) const { return start(owner + 1) - start(owner); }

  void give(int owner, int leader) {
    for (const auto& [part, node] : partials_) {
      const auto [rank, root] = part;
      if (rank == rank_) plan_.inside.sends.push_back({leader, {root, start(owner)}, slice(owner)});
    }
  }

  Place receive(SlicePlan::Round& round, int from, std::int64_t count) {
    const Place place{-1, plan_.receive_elements};
    plan_.receive_elements += count;
    round.receives.push_back({from, place, count});
    return place;
  }

  /// The places of this host's partial sums of a slice that this rank leads, by rank and root.
  std::map<std::pair<int, int>, Place> gather(int owner) {
    std::map<std::pair<int, int>, Place> places;
    for (const auto& [part, node] : partials_) {
      const auto [rank, root] = part;
      places[part] = rank == rank_ ? Place{root, start(owner)} : receive(plan_.inside, rank, slice(owner));
    }
    return places;
  }

  void gather_for(int owner) {
    const auto places = gather(owner);
    for (const HostSum& sum : own_sums()) {
      SlicePlan::Sum& gathered = plan_.gathered.emplace_back();
      for (const Partial& part : sum.parts) gathered.parts.push_back(places.at({part.rank, part.root}));
      gathered.additions = sum.additions;
      gathered.count = slice(owner);
      plan_.between.sends.push_back({owner, result_of(gathered), slice(owner)});
    }
  }

  void gather_own() {
    for (const auto& [part, place] : gather(rank_)) {
      nodes_.push_back(partials_.at(part));
      plan_.own.parts.push_back(place);
    }
  }

  void finish_own(const Tree& tree) {
    for (int host = 0; host < hosts_.count(); ++host) {
      if (host == host_) continue;
      for (const HostSum& sum : sums_[static_cast<std::size_t>(host)]) {
        nodes_.push_back(sum.node);
        plan_.own.parts.push_back(receive(plan_.between, hosts_.leader(host, rank_), slice(rank_)));
      }
    }
    plan_.own.additions = combine_order(tree, tree.root(), nodes_);
  }

  const Hosts& hosts_;
  const SumsOfHosts& sums_;
  int rank_, host_;
  std::span<const std::int64_t> bounds_;
  std::map<std::pair<int, int>, TreeNode> partials_;  ///< of this host, by rank and root
  std::vector<TreeNode> nodes_;                       ///< of plan_.own.parts
  SlicePlan plan_;
};

}  // namespace

Place result_of(const SlicePlan::Sum& sum) {
  std::vector<Place> places = sum.parts;
  for (const Addition& addition : sum.additions) places.push_back(places[static_cast<std::size_t>(addition.left)]);
  return places.back();
}

SumsOfHosts sums_of_hosts(const Tree& tree, const ShardAssignment& assignment, const Hosts& hosts) {
  SumsOfHosts sums;
  for (int host = 0; host < hosts.count(); ++host) sums.push_back(sums_of_host(tree, assignment, hosts.ranks(host)));
  return sums;
}

SlicePlan slice_plan(const Tree& tree, const Hosts& hosts, const SumsOfHosts& sums, int rank,
                     std::span<const std::int64_t> bounds) {
  return Planner(hosts, sums, rank, bounds).make(tree);
}

}  // namespace lockstep::comm
