// Where toy models are cut, and the messages if they cannot be. exec/parts_test.cpp checks that no cut changes a bit.
#include "graph/cut.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "graph/even_runs.hpp"
#include "graph/parts.hpp"
#include "lockstep/error.hpp"
#include "lockstep/graph_builder.hpp"

namespace lockstep {

namespace {

using Parts = std::vector<int>;
using Ranks = std::vector<std::vector<int>>;

OpDef cut_toy(const std::string& name, OpKind kind = OpKind::layer) {
  OpDef op;
  op.name = name;
  op.kind = kind;
  op.min_inputs = 1;
  op.max_inputs = -1;
  op.attributes = {{.name = "work", .kind = AttributeKind::number, .doc = "", .default_value = Attribute(1.0)},
                   {.name = "width", .doc = "", .default_value = Attribute(std::int64_t{8})}};
  op.infer = [kind](const Attributes& attributes, std::span<const TensorSpec>) {
    Signature signature;
    signature.outputs = {{DType::f32, {4, attributes.integer("width")}}};
    signature.parameters = {{"weight", {8}, Initializer::ones()}};
    if (kind != OpKind::layer) signature = {{{DType::f32, {4}}, {DType::f32, {4}}}, {}, {}, {}};
    return signature;
  };
  op.cost = [](const Attributes& attributes, std::span<const TensorSpec>, const Signature&) {
    return Cost{1000 * attributes.number("work"), 2000 * attributes.number("work")};
  };
  if (kind != OpKind::layer) op.cost = {};
  return op;
}

OpRegistry cut_toys() {
  OpRegistry ops;
  ops.add(cut_toy("work"));
  OpDef view = cut_toy("view");
  view.view = true;
  view.cost = {};
  ops.add(view);
  ops.add(cut_toy("loss", OpKind::loss));
  ops.add(cut_toy("score", OpKind::metric));
  return ops;
}

/// Models whose layers are called a, b, c, ...
class Cut : public testing::Test {
 protected:
  ValueId layer(const std::vector<ValueId>& inputs, double work = 1, std::int64_t width = 8) {
    const std::string name(1, static_cast<char>('a' + builder_.graph().nodes.size()));
    return builder_.apply("work", inputs, Attributes({{"work", work}, {"width", width}}), name);
  }
  ValueId row(ValueId x, const std::vector<double>& works) {
    for (const double work : works) x = layer({x}, work);
    return x;
  }
  const Graph& end(ValueId x) {
    Graph& graph = builder_.graph();
    graph.output = x;
    graph.loss = builder_.add_node("loss", {x}, {}, "loss");
    graph.metrics = {builder_.add_node("score", {x}, {}, "score")};
    return graph;
  }
  /// Also splits, as a check.
  Parts parts(const ParallelOptions& parallel, int ranks) {
    const Graph& graph = builder_.graph();
    Parts found = cut(graph, parallel, ranks);
    const auto made = split(graph, found);
    for (std::size_t p = 0; p < made.size(); ++p) {
      for (const auto& source : made[p].received_from) EXPECT_LT(source.part, static_cast<int>(p));
    }
    return found;
  }
  std::string error(const ParallelOptions& parallel, int ranks = 4) {
    try {
      (void)cut(builder_.graph(), parallel, ranks);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ExitCode::configuration);
      return e.what();
    }
    return "no error";
  }

  OpRegistry ops_ = cut_toys();
  GraphBuilder builder_{ops_, 4};
  ValueId x_ = builder_.input("x", {DType::f32, {8}});
};

PartOptions until(const std::string& name, std::int64_t ranks = 0) {
  return {.until = name, .ranks = ranks, .place = {"job.yaml", 5, 12, "job.parallel.parts[0]"}};
}

}  // namespace

TEST(Shares, AreInProportionToCostAndNeverNone) {
  EXPECT_EQ(ranks_by_cost({3, 1}, 8), (std::vector<int>{6, 2}));
  EXPECT_EQ(ranks_by_cost({100, 1, 1}, 4), (std::vector<int>{2, 1, 1}));
  EXPECT_EQ(ranks_by_cost({5, 5, 5}, 4), (std::vector<int>{2, 1, 1}));
  EXPECT_EQ(ranks_by_cost({0, 0}, 3), (std::vector<int>{2, 1}));
  EXPECT_EQ(ranks_by_cost({9, 1}, 8, 5), (std::vector<int>{5, 3}));
}

TEST(EvenRuns, AreTheBestOfAll) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t count = 1 + random() % 9;
    const int runs = 1 + static_cast<int>(random() % std::min<std::size_t>(count, 4));
    const int ranks = runs + static_cast<int>(trial % 2 == 0 ? 0 : random() % 5);
    Row row;
    for (std::size_t i = 0; i < count; ++i) {
      row.costs.push_back(static_cast<double>(random() % 6));
      row.seams.push_back(static_cast<double>(1 + random() % 9));
    }
    const auto price = [&](const std::vector<int>& run) {
      std::vector<double> costs(static_cast<std::size_t>(runs));
      double seams = 0;
      for (std::size_t i = 0; i < count; ++i) {
        costs[static_cast<std::size_t>(run[i])] += row.costs[i];
        if (i > 0 && run[i] != run[i - 1]) seams += row.seams[i];
      }
      const std::vector<int> shares = ranks_by_cost(costs, ranks);
      double most = 0;
      for (std::size_t k = 0; k < costs.size(); ++k) most = std::max(most, costs[k] / shares[k]);
      return std::pair{most, seams};
    };
    std::pair best{std::numeric_limits<double>::infinity(), 0.0};
    std::vector<bool> begins(count);  // of a run, by item
    std::fill(begins.end() - (runs - 1), begins.end(), true);
    do {
      if (begins[0]) continue;
      std::vector<int> run(count);
      for (std::size_t i = 1; i < count; ++i) run[i] = run[i - 1] + (begins[i] ? 1 : 0);
      best = std::min(best, price(run));
    } while (std::next_permutation(begins.begin(), begins.end()));
    const auto found = price(even_runs(row, runs, ranks));
    EXPECT_DOUBLE_EQ(found.first, best.first) << "trial " << trial;
    if (runs == ranks) {
      EXPECT_EQ(found.second, best.second) << "trial " << trial;
    }
  }
}

TEST_F(Cut, ByCost) {
  (void)end(row(x_, {1, 1, 2, 4, 1, 3}));
  EXPECT_EQ(parts({.parts = 1}, 4), (Parts{0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(parts({.parts = 3}, 3), (Parts{0, 0, 0, 1, 2, 2, 2, 2}));
  EXPECT_EQ(parts({.parts = 3}, 1), (Parts{0, 0, 0, 0, 0, 0, 0, 0})) << "one rank computes all";
  EXPECT_EQ(parts({.parts = 3}, 2), parts({.parts = 2}, 2));
  EXPECT_EQ(parts({.parts = 100}, 100), (Parts{0, 1, 2, 3, 4, 5, 5, 5})) << "no part of loss and metrics alone";
}

TEST_F(Cut, ByCostOfARank) {
  (void)end(row(x_, {6, 1, 1, 1}));
  const Placement three = place_parts(builder_.graph(), {.parts = 2}, 3);
  EXPECT_EQ(three.part_of_node, (Parts{0, 1, 1, 1, 1, 1}));
  EXPECT_EQ(three.ranks_of_part, (Ranks{{0, 1}, {2}}));
  EXPECT_EQ(place_parts(builder_.graph(), {}, 3).ranks_of_part, (Ranks{{0, 1, 2}}));
}

TEST_F(Cut, ByCostWhereLeastIsSent) {
  ValueId x = layer({layer({x_}, 4)}, 0, 1);
  (void)end(row(layer({x}, 0, 64), {4}));
  EXPECT_EQ(parts({.parts = 2}, 2), (Parts{0, 0, 1, 1, 1, 1}));
}

TEST_F(Cut, NeverBeforeAView) {
  (void)end(layer({builder_.apply("view", {layer({x_})})}));
  EXPECT_EQ(parts({.parts = 3}, 3), (Parts{0, 0, 1, 1, 1}));
}

TEST_F(Cut, ByHand) {
  builder_.begin_block("first");
  ValueId x = row(x_, {1, 1});
  builder_.begin_block("");
  (void)end(row(x, {1, 1, 1}));
  EXPECT_EQ(parts({.cuts = {until("first"), until("c"), {}}}, 3), (Parts{0, 0, 1, 2, 2, 2, 2}));
  EXPECT_EQ(parts({.cuts = {{}}}, 3), (Parts{0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(parts({.cuts = {until("b"), until("c"), {}}}, 2), (Parts{0, 0, 0, 1, 1, 1, 1})) << "neighbours are one";
  EXPECT_EQ(
      error({.cuts = {until("frist"), {}}}),
      "job.yaml:5:12: job.parallel.parts[0]: until: expected a block or layer of the model, found 'frist'; did you "
      "mean 'first'?");
  EXPECT_EQ(error({.cuts = {until("loss"), {}}}),
            "job.yaml:5:12: job.parallel.parts[0]: until: expected a block or layer of the model, found 'loss'");
  EXPECT_EQ(
      error({.cuts = {until("c"), until("first"), {}}}),
      "job.yaml:5:12: job.parallel.parts[0]: until: expected a block or layer after 'c', with which the part before "
      "ends, found 'first'");
  EXPECT_EQ(
      error({.cuts = {until("e"), {}}}),
      "job.yaml:5:12: job.parallel.parts[0]: until: expected a block or layer with others after it, found 'e', the "
      "last one; leave out the last part");
}

TEST_F(Cut, ByHandAfterALayerThatLoweringHasJoined) {
  Graph graph = end(row(x_, {1, 1, 1}));
  graph.values[static_cast<std::size_t>(graph.nodes[1].outputs[0])].name = "act";  // the output of the joined kernel
  EXPECT_EQ(cut(graph, {.cuts = {until("act"), {}}}, 2), (Parts{0, 0, 1, 1, 1}));
}

TEST_F(Cut, ByHandForRanks) {
  (void)end(row(x_, {1, 1, 1}));
  ParallelOptions parallel{.cuts = {until("a", 1), until("", 4)}};
  parallel.place = {"job.yaml", 5, 3, "job.parallel.parts"};
  EXPECT_EQ(place_parts(builder_.graph(), parallel, 5).ranks_of_part, (Ranks{{0}, {1, 2, 3, 4}}));
  const Placement one = place_parts(builder_.graph(), parallel, 1);
  EXPECT_EQ(one.part_of_node, (Parts{0, 0, 0, 0, 0}));
  EXPECT_EQ(one.ranks_of_part, (Ranks{{0}}));
  EXPECT_EQ(
      error(parallel),
      "job.yaml:5:3: job.parallel.parts: expected 5 ranks, as the parts say, found 4; start with --ranks 5, or leave "
      "out `ranks`");
}

TEST_F(Cut, APartHasNoMoreRanksThanMicroBatches) {
  (void)end(row(x_, {6, 1}));
  EXPECT_EQ(place_parts(builder_.graph(), {.parts = 2}, 6, 4).ranks_of_part, (Ranks{{0, 1, 2, 3}, {4, 5}}));
  const auto message = [&](const ParallelOptions& parallel, int ranks) -> std::string {
    try {
      (void)place_parts(builder_.graph(), parallel, ranks, 4);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ExitCode::configuration);
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(message({.parts = 9}, 9),
            "expected at most as many ranks for a part as the job has micro-batches, found 9 ranks for 2 parts of 4 "
            "micro-batches; start "
            "with --ranks 8, or set micro_batches to a larger divisor of batch_size");
  EXPECT_EQ(message({.cuts = {until("a", 5), until("", 1)}}, 6),
            "ranks: expected at most as many for a part as the job has micro-batches, 4, found 5");
}

TEST_F(Cut, ByNamesOfLayers) {
  const ValueId a = layer({x_});
  builder_.begin_part("left");
  const ValueId b = layer({a});
  builder_.begin_part("right");
  const ValueId c = layer({a});
  builder_.begin_part("left");
  const ValueId d = layer({b});
  builder_.begin_part("");
  (void)end(layer({layer({c, d})}));
  EXPECT_EQ(
      error({}),
      "parts 'left' and 'right' wait for each other: 'c' of part 'right' reads 'a' of part 'left', and something of "
      "part 'left' depends on part 'right'; cut where nothing leads back");
  builder_.graph().nodes[4].part = "right";
  EXPECT_EQ(parts({}, 2), (Parts{0, 0, 1, 0, 1, 1, 1, 1}));
  EXPECT_EQ(parts({}, 1), (Parts{0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST_F(Cut, ByNamesThatStandInAnotherOrder) {
  builder_.begin_part("late");
  const ValueId a = layer({x_});
  builder_.begin_part("early");
  const ValueId b = layer({x_});
  builder_.begin_part("late");
  (void)end(layer({a, b}));
  EXPECT_EQ(parts({}, 2), (Parts{1, 0, 1, 1, 1}));
}

TEST_F(Cut, BranchesThatBeginWithTheInputs) {
  const ValueId left = row(x_, {2, 2}), right = row(x_, {2, 1});
  (void)end(layer({left, right}, 1));
  EXPECT_EQ(parts({.branches = true}, 2), (Parts{0, 0, 1, 1, 1, 1, 1})) << "the smaller one with what comes after";
  EXPECT_EQ(parts({.branches = true}, 1), (Parts{0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(place_parts(builder_.graph(), {.branches = true}, 4).ranks_of_part, (Ranks{{0, 1}, {2, 3}}));
}

TEST_F(Cut, BranchesOfAFork) {
  const ValueId trunk = row(x_, {1, 1});
  const ValueId one = layer({trunk}, 4), two = layer({trunk}, 3), three = layer({trunk}, 2);
  (void)end(row(layer({layer({one, two}), three}), {1}));
  EXPECT_EQ(parts({.branches = true}, 3), (Parts{0, 0, 1, 0, 2, 2, 2, 2, 2, 2})) << "of 5, 4 and 5";
  EXPECT_EQ(parts({.branches = true}, 2), (Parts{0, 0, 0, 1, 0, 1, 1, 1, 1, 1})) << "of 8 and 6";
}

TEST_F(Cut, NoBranches) {
  ParallelOptions parallel{.branches = true};
  parallel.place = {"job.yaml", 5, 12, "job.parallel.parts"};
  ValueId x = row(x_, {1, 1});
  builder_.graph().output = x;
  EXPECT_EQ(
      error(parallel),
      "job.yaml:5:12: job.parallel.parts: expected a model with branches that do not depend on each other, found "
      "none: each layer of this model needs those before it; set parts to a number, which cuts the model into parts "
      "that follow one another");
  x = row(layer({layer({x}, 50), layer({x}, 1)}, 50), {1});
  (void)end(x);
  EXPECT_EQ(
      error(parallel),
      "job.yaml:5:12: job.parallel.parts: expected a model with branches that do not depend on each other, found "
      "none that are worth ranks of their own: beside the largest there is 'd' to 'd' with 1.0 % of the work; set "
      "parts to a number, which cuts the model into parts that follow one another");
}

}  // namespace lockstep
