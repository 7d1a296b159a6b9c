// Where models are cut for ranks of unequal speed, compared with everything possible: every cut, every assignment of
// ranks to parts, every share of every rank. The choice must take hardly longer than the best of these.
#include "run/plan/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <numeric>

#include "comm/reduce/micro_batch_assignment.hpp"
#include "graph/model_graph.hpp"
#include "graph/zoo.hpp"
#include "lockstep/graph_builder.hpp"
#include "ops/registry.hpp"
#include "step/balance/split.hpp"
#include "step/exec/cpu_device.hpp"
#include "step/exec/part_links.hpp"

namespace lockstep::plan {

namespace {

using Counts = std::vector<int>;
using Groups = std::vector<std::vector<int>>;
using Speeds = std::vector<double>;

struct Models {
  Models() {
    ops::add_built_in(ops);
    models::add_built_in(zoo);
  }
  Graph lowered(ModelGraphRequest request) const {
    const LossOptions loss;
    request.loss = &loss;
    return exec::CpuDevice().lower(build_model_graph(request, ops, zoo), true);
  }
  Graph resnet20() const {
    const ModelOptions model{.zoo = "resnet", .parameters = Attributes({{"depth", std::int64_t{20}}})};
    return lowered({.model = &model,
                    .metrics = {"accuracy"},
                    .features = {{"image", Feature::Kind::image, {DType::f32, {28, 28, 1}}},
                                 {"label", Feature::Kind::label, {DType::i32, {}}}},
                    .classes = 10,
                    .batch = 8});
  }
  Graph gpt() const {
    const ModelOptions model{
        .zoo = "gpt",
        .parameters =
            Attributes({{"layers", std::int64_t{6}}, {"heads", std::int64_t{4}}, {"width", std::int64_t{128}}})};
    return lowered({.model = &model,
                    .metrics = {"perplexity"},
                    .features = {{"tokens", Feature::Kind::tokens, {DType::i32, {64}}},
                                 {"target", Feature::Kind::tokens, {DType::i32, {64}}}},
                    .vocabulary = 65,
                    .batch = 2});
  }
  /// Linear layers of these widths.
  Graph chain(const std::vector<std::int64_t>& widths, std::int64_t features = 64) const {
    GraphBuilder b(ops, 4);
    ValueId x = b.input("image", {DType::f32, {features}});
    for (const std::int64_t width : widths) x = b.apply("linear", {x}, Attributes({{"features", width}}));
    b.graph().output = x;
    b.graph().loss = b.add_node("cross_entropy", {x, b.input("label", {DType::i32, {}})}, {}, "loss");
    return std::move(b.graph());
  }
  /// Two towers with these numbers of layers, and a small head.
  Graph towers(int left, int right) const {
    GraphBuilder b(ops, 4);
    std::vector<ValueId> ends;
    for (const int layers : {left, right}) {
      ValueId x = b.input(ends.empty() ? "left" : "right", {DType::f32, {64}});
      for (int i = 0; i < layers; ++i) x = b.apply("linear", {x}, Attributes({{"features", std::int64_t{64}}}));
      ends.push_back(x);
    }
    const ValueId x = b.apply("linear", {b.apply("add", ends)}, Attributes({{"features", std::int64_t{10}}}));
    b.graph().output = x;
    b.graph().loss = b.add_node("cross_entropy", {x, b.input("label", {DType::i32, {}})}, {}, "loss");
    return std::move(b.graph());
  }
  OpRegistry ops;
  ModelRegistry zoo;
};

/// A step of parts with these costs: for each part its ranks and how many micro-batches each has.
class Simulation {
 public:
  Simulation(Speeds speeds, int micro_batches) : speeds_(std::move(speeds)), micro_batches_(micro_batches) {}

  [[nodiscard]] double step(const std::vector<balance::PartCost>& costs, const Groups& groups,
                            const std::vector<Counts>& counts) const {
    balance::PipelineSetup setup{costs, {}, speeds_, exec::default_in_flight(groups)};
    for (std::size_t p = 0; p < groups.size(); ++p) {
      const comm::MicroBatchAssignment placed = comm::place_micro_batches(counts[p]);
      auto& rank_of = setup.rank_of_micro_batch.emplace_back(static_cast<std::size_t>(micro_batches_));
      for (std::size_t r = 0; r < groups[p].size(); ++r) {
        for (const int micro_batch : placed.micro_batches_of_rank[r])
          rank_of[static_cast<std::size_t>(micro_batch)] = groups[p][r];
      }
    }
    return balance::schedule(setup).seconds;
  }

  /// The shortest time over all shares, or `best` if none is shorter.
  [[nodiscard]] double best_step(const std::vector<balance::PartCost>& costs, const Groups& groups, double best) const {
    std::vector<Counts> counts(groups.size());
    try_shares(costs, groups, counts, 0, best);
    return best;
  }

  [[nodiscard]] Speeds speeds_of(const std::vector<int>& ranks) const {
    Speeds speeds;
    for (const int rank : ranks) speeds.push_back(speeds_[static_cast<std::size_t>(rank)]);
    return speeds;
  }
  [[nodiscard]] int micro_batches() const { return micro_batches_; }
  [[nodiscard]] int ranks() const { return static_cast<int>(speeds_.size()); }

 private:
  void try_shares(const std::vector<balance::PartCost>& costs, const Groups& groups, std::vector<Counts>& counts,
                  std::size_t part, double& best) const {
    if (part == groups.size()) {
      best = std::min(best, step(costs, groups, counts));
      return;
    }
    counts[part].clear();
    try_counts(costs, groups, counts, part, micro_batches_, best);
  }

  // The next rank of the part, of which `left` micro-batches remain. No step is shorter than what one rank computes.
  void try_counts(const std::vector<balance::PartCost>& costs, const Groups& groups, std::vector<Counts>& counts,
                  std::size_t part, int left, double& best) const {
    Counts& own = counts[part];
    const std::size_t next = own.size();
    const bool last = next + 1 == groups[part].size();
    for (int count = last ? left : 0; count <= left; ++count) {
      const double speed = speeds_[static_cast<std::size_t>(groups[part][next])];
      if (count * (costs[part].forward + costs[part].backward) / speed >= best) break;
      own.resize(next);
      own.push_back(count);
      last ? try_shares(costs, groups, counts, part + 1, best)
           : try_counts(costs, groups, counts, part, left - count, best);
    }
    own.resize(next);
  }

  Speeds speeds_;
  int micro_batches_;
};

/// All ways to assign ranks to parts, at least one each.
std::vector<Groups> all_groups(int ranks, int parts) {
  std::vector<Groups> all;
  const auto ways = static_cast<int>(std::pow(parts, ranks));
  for (int way = 0; way < ways; ++way) {
    Groups groups(static_cast<std::size_t>(parts));
    int rest = way;
    for (int rank = 0; rank < ranks; ++rank, rest /= parts) {
      groups[static_cast<std::size_t>(rest % parts)].push_back(rank);
    }
    if (std::none_of(groups.begin(), groups.end(), [](const auto& group) { return group.empty(); })) {
      all.push_back(std::move(groups));
    }
  }
  return all;
}

/// Calls `use` with each cut into this many parts.
void for_each_cut(const Graph& graph, int parts, const std::function<void(const std::vector<int>&)>& use) {
  const Row row = row_to_cut(graph);
  std::vector<std::size_t> seams, chosen;
  for (std::size_t n = 1; n < row.seams.size(); ++n) {
    if (std::isfinite(row.seams[n])) seams.push_back(n);
  }
  const std::function<void(std::size_t)> choose = [&](std::size_t from) {
    if (static_cast<int>(chosen.size()) + 1 == parts) {
      std::vector<int> part_of_node(graph.nodes.size());
      for (const std::size_t begin : chosen) {
        for (std::size_t n = begin; n < part_of_node.size(); ++n) ++part_of_node[n];
      }
      return use(part_of_node);
    }
    for (std::size_t s = from; s < seams.size(); ++s) {
      chosen.push_back(seams[s]);
      choose(s + 1);
      chosen.pop_back();
    }
  };
  choose(0);
}

double best_of_all(const Graph& graph, int parts, const Simulation& simulation) {
  double best = std::numeric_limits<double>::infinity();
  const std::vector<Groups> all = all_groups(simulation.ranks(), parts);
  for_each_cut(graph, parts, [&](const std::vector<int>& part_of_node) {
    const auto costs = counted_costs(split(graph, part_of_node));
    for (const Groups& groups : all) best = simulation.best_step(costs, groups, best);
  });
  return best;
}

/// The choices with shares in proportion to the speeds (`balance: {weights: ...}`), and with those of the balancer.
struct Chosen {
  Placement placement;
  double by_weights = 0, by_balancer = 0;
};

Chosen choose(const Graph& graph, const ParallelOptions& parallel, const Simulation& simulation) {
  std::vector<int> all(static_cast<std::size_t>(simulation.ranks()));
  std::iota(all.begin(), all.end(), 0);
  Chosen chosen{place_by_speed(graph, parallel, simulation.speeds_of(all), simulation.micro_batches())};
  const auto costs = counted_costs(split(graph, chosen.placement.part_of_node));
  std::vector<Counts> by_weights, by_balancer;
  for (std::size_t p = 0; p < costs.size(); ++p) {
    const Speeds speeds = simulation.speeds_of(chosen.placement.ranks_of_part[p]);
    by_weights.push_back(comm::counts_by_weights(simulation.micro_batches(), speeds));
    std::vector<balance::RankCost> ranks;
    for (const double speed : speeds) {
      ranks.push_back({.seconds_per_micro_batch = (costs[p].forward + costs[p].backward) / speed,
                       .workers = 1,
                       .max_micro_batches = simulation.micro_batches()});
    }
    by_balancer.push_back(balance::best_split(ranks, simulation.micro_batches(), 0));
  }
  chosen.by_weights = simulation.step(costs, chosen.placement.ranks_of_part, by_weights);
  chosen.by_balancer = simulation.step(costs, chosen.placement.ranks_of_part, by_balancer);
  return chosen;
}

void expect_near_the_best(const std::string& name, const Graph& graph, int parts, const Speeds& speeds,
                          int micro_batches) {
  const Simulation simulation(speeds, micro_batches);
  const double best = best_of_all(graph, parts, simulation);
  const Chosen chosen = choose(graph, {.parts = parts}, simulation);
  std::string text = name + ", " + std::to_string(parts) + " parts, speeds";
  for (const double speed : speeds) text += " " + std::to_string(static_cast<int>(speed));
  EXPECT_GE(best / chosen.by_weights, 0.95) << text;
  EXPECT_GE(best / chosen.by_balancer, 0.95) << text;
  EXPECT_LE(best / chosen.by_weights, 1.0001) << text << ": the search has missed some";
  if (std::getenv("LOCKSTEP_TEST_PRINT") != nullptr) {
    std::printf("%s: %.3f by weights, %.3f by the balancer\n", text.c_str(), best / chosen.by_weights,
                best / chosen.by_balancer);
  }
}

}  // namespace

TEST(Placement, OfUnequalRanksIsNearlyTheBestThereIs) {
  const Models models;
  const std::vector<std::pair<std::string, Graph>> graphs = {
      {"resnet20", models.resnet20()},
      {"gpt", models.gpt()},
      {"chain", models.chain({64, 512, 64, 64, 256, 1024, 64, 128, 64, 10})}};
  for (const auto& [name, graph] : graphs) {
    for (const Speeds& speeds :
         {Speeds{1, 2}, {2, 1}, {1, 4}, {1, 1, 2}, {2, 1, 1}, {1, 2, 1}, {1, 2, 2, 4}, {4, 2, 2, 1}}) {
      expect_near_the_best(name, graph, 2, speeds, 8);
    }
  }
  expect_near_the_best("chain", graphs.back().second, 3, {1, 1, 2}, 8);
  expect_near_the_best("chain", graphs.back().second, 3, {1, 2, 2, 4}, 8);
  expect_near_the_best("chain", graphs.back().second, 2, {1, 2, 2, 4}, 12);
}

TEST(Placement, OfTwoRanksFollowsTheirSpeeds) {
  const Models models;
  const Graph graph = models.chain(std::vector<std::int64_t>(9, 512), 512);
  const auto layers_of_first = [&](const Speeds& speeds) {
    const Placement placement = place_by_speed(graph, {.parts = 2}, speeds, 64);
    EXPECT_EQ(placement.ranks_of_part, (Groups{{0}, {1}}));
    return std::count(placement.part_of_node.begin(), placement.part_of_node.end(), 0);
  };
  EXPECT_EQ(layers_of_first({1, 2}), 3);
  EXPECT_EQ(layers_of_first({2, 1}), 6);
  EXPECT_EQ(layers_of_first({200, 100}), 6) << "only their proportions count";
}

TEST(Placement, AHeavyPartGoesToTheFasterRank) {
  const Models models;
  const Graph towers = models.towers(8, 4);
  ParallelOptions branches;
  branches.branches = true;
  const Placement first = place_by_speed(towers, branches, {2, 1}, 8),
                  second = place_by_speed(towers, branches, {1, 2}, 8);
  EXPECT_EQ(first.part_of_node, second.part_of_node);
  EXPECT_EQ(first.ranks_of_part, (Groups{{0}, {1}}));
  EXPECT_EQ(second.ranks_of_part, (Groups{{1}, {0}}));
}

TEST(Placement, OfEqualRanksAndWhereTheJobSaysItIsThatOfTheCut) {
  const Models models;
  const Graph graph = models.chain({64, 512, 64, 64, 256});
  const auto expect_same = [&](const ParallelOptions& parallel, const Speeds& speeds) {
    const Placement expected = place_parts(graph, parallel, static_cast<int>(speeds.size()), 8);
    const Placement placement = place_by_speed(graph, parallel, speeds, 8);
    EXPECT_EQ(placement.part_of_node, expected.part_of_node);
    EXPECT_EQ(placement.ranks_of_part, expected.ranks_of_part);
  };
  expect_same({.parts = 2}, {3, 3, 3});
  expect_same({.parts = 2}, {1, 0});
  expect_same({.parts = 1}, {1, 2});
  ParallelOptions by_hand;
  by_hand.cuts = {{.until = graph.nodes[0].name, .ranks = 1}, {.ranks = 2}};
  expect_same(by_hand, {1, 2, 4});
}

}  // namespace lockstep::plan
