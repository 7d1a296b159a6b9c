// Where real models are cut, as lowered for CPUs: every way in which a job can request it, and how even the parts are.
// parts_test.cpp checks that no cut changes a bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "graph/cut.hpp"
#include "graph/model_graph.hpp"
#include "graph/parts.hpp"
#include "graph/precision.hpp"
#include "graph/workload.hpp"
#include "graph/zoo.hpp"
#include "lockstep/error.hpp"
#include "ops/registry.hpp"
#include "step/exec/cpu_device.hpp"

namespace lockstep::exec {

namespace {

struct Zoo {
  Zoo() {
    ops::add_built_in(ops);
    models::add_built_in(zoo);
  }
  Graph lowered(ModelGraphRequest request, DType precision = DType::f32) const {
    const LossOptions loss;
    request.loss = &loss;
    Graph graph = build_model_graph(request, ops, zoo);
    set_precision(graph, precision);
    return CpuDevice().lower(graph, true);
  }
  Graph resnet20(DType precision = DType::f32) const {
    const ModelOptions model{.zoo = "resnet", .parameters = Attributes({{"depth", std::int64_t{20}}})};
    return lowered({.model = &model,
                    .metrics = {"accuracy"},
                    .features = {{"image", Feature::Kind::image, {DType::f32, {32, 32, 3}}},
                                 {"label", Feature::Kind::label, {DType::i32, {}}}},
                    .classes = 10,
                    .batch = 16},
                   precision);
  }
  Graph gpt_small(DType precision = DType::f32) const {
    const ModelOptions model{.zoo = "gpt", .parameters = Attributes({{"size", std::string("small")}})};
    return lowered({.model = &model,
                    .metrics = {"perplexity"},
                    .features = {{"tokens", Feature::Kind::tokens, {DType::i32, {128}}},
                                 {"target", Feature::Kind::tokens, {DType::i32, {128}}}},
                    .vocabulary = 65,
                    .batch = 2},
                   precision);
  }
  /// Two images, a tower for each, and a head that compares them.
  Graph towers() const {
    ModelOptions model;
    for (const std::string side : {"left", "right"}) {
      const auto layer = [&](const std::string& op, const std::string& name, Attributes attributes = {}) {
        const bool first = model.layers.empty() || name == "conv1";
        model.layers.push_back({.op = op,
                                .attributes = std::move(attributes),
                                .name = side + "." + name,
                                .inputs = first ? std::vector{side} : std::vector<std::string>{}});
      };
      const Attributes filters({{"filters", std::int64_t{16}}, {"kernel", std::int64_t{3}}});
      layer("conv", "conv1", filters);
      layer("batch_norm", "norm1");
      layer("relu", "relu1");
      layer("conv", "conv2", filters);
      layer("flatten", "flat");
      layer("linear", "linear", Attributes({{"features", std::int64_t{32}}}));
    }
    model.layers.push_back({.op = "concat", .inputs = {"left.linear", "right.linear"}});
    model.layers.push_back({.op = "linear", .attributes = Attributes({{"features", std::int64_t{2}}})});
    return lowered({.model = &model,
                    .metrics = {"accuracy"},
                    .features = {{"left", Feature::Kind::image, {DType::f32, {28, 28, 1}}},
                                 {"right", Feature::Kind::image, {DType::f32, {28, 28, 1}}},
                                 {"label", Feature::Kind::label, {DType::i32, {}}}},
                    .classes = 2,
                    .batch = 8});
  }
  OpRegistry ops;
  ModelRegistry zoo;
};

/// The largest cost of a rank, relative to an equal distribution; checks that the parts can be split, and that none
/// reads a later one.
double unevenness(const Graph& graph, const Placement& placement) {
  const auto parts = split(graph, placement.part_of_node);
  EXPECT_EQ(parts.size(), placement.ranks_of_part.size());
  double most = 0, sum = 0, ranks = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    for (const auto& source : parts[p].received_from) EXPECT_LT(source.part, static_cast<int>(p));
    double cost = 0;
    for (const std::int32_t n : parts[p].nodes) {
      const Cost of_node = cost_of(graph, graph.nodes[static_cast<std::size_t>(n)]);
      cost += of_node.forward_flops + of_node.backward_flops;
    }
    const auto share = static_cast<double>(placement.ranks_of_part[p].size());
    most = std::max(most, cost / share);
    sum += cost;
    ranks += share;
  }
  return most * ranks / sum;
}

std::string last_layer_of(const Graph& graph, const std::vector<int>& part_of_node, int part) {
  const auto last = std::find(part_of_node.rbegin(), part_of_node.rend(), part);
  return graph.nodes[static_cast<std::size_t>(part_of_node.rend() - last) - 1].name;
}

std::string error(const Graph& graph, const ParallelOptions& parallel) {
  try {
    (void)cut(graph, parallel, 4);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST(CutModels, EachInPartsThatAreEvenForARank) {
  const Zoo zoo;
  for (const Graph& graph : {zoo.resnet20(), zoo.resnet20(DType::bf16), zoo.gpt_small(), zoo.gpt_small(DType::bf16)}) {
    const std::string name = graph.nodes[0].name;
    for (const int ranks : {1, 2, 3, 4, 5, 8, 16}) {
      for (const int parts : {1, 2, 3, 4, 6}) {
        const Placement placement = place_parts(graph, {.parts = parts}, ranks);
        EXPECT_EQ(static_cast<int>(placement.ranks_of_part.size()), std::min(parts, ranks));
        EXPECT_LT(unevenness(graph, placement), 1.25) << name << ": " << parts << " parts, " << ranks << " ranks";
      }
    }
  }
}

TEST(CutModels, WhereLeastIsSent) {
  const Graph graph = Zoo().gpt_small();
  EXPECT_EQ(last_layer_of(graph, cut(graph, {.parts = 2}, 2), 0), "block3.add2") << "not beside a residual";
}

TEST(CutModels, ByHandAtBlocksAndLayers) {
  const Zoo zoo;
  const Graph resnet = zoo.resnet20(), gpt = zoo.gpt_small();
  const auto hand = [](const std::string& first, const std::string& second) {
    return ParallelOptions{.cuts = {{.until = first}, {.until = second}, {}}};
  };
  const auto of_gpt = cut(gpt, hand("block2", "block4"), 3);
  EXPECT_EQ(last_layer_of(gpt, of_gpt, 0), "block2.add2");
  EXPECT_EQ(last_layer_of(gpt, of_gpt, 1), "block4.add2");
  EXPECT_LT(unevenness(gpt, place_parts(gpt, hand("block2", "block4"), 3)), 1.1);
  const auto of_resnet = cut(resnet, hand("stage1.block3", "stage2.block2.relu"), 3);
  EXPECT_EQ(split(resnet, of_resnet).size(), 3u);
  EXPECT_EQ(error(gpt, hand("block2", "blok4")),
            "until: expected a block or layer of the model, found 'blok4'; did you mean 'block4'?");
}

TEST(CutModels, OnlyTwoTowersHaveBranches) {
  const Zoo zoo;
  const Graph towers = zoo.towers();
  const Placement two = place_parts(towers, {.branches = true}, 2);
  EXPECT_LT(unevenness(towers, two), 1.05);
  for (std::size_t n = 0; n < towers.nodes.size(); ++n) {
    EXPECT_EQ(two.part_of_node[n], towers.nodes[n].name.starts_with("left.") ? 0 : 1) << towers.nodes[n].name;
  }
  EXPECT_LT(unevenness(towers, place_parts(towers, {.branches = true}, 6)), 1.05);
  EXPECT_NE(error(zoo.resnet20(), {.branches = true}).find("found none that are worth ranks of their own"),
            std::string::npos);
  EXPECT_NE(error(zoo.gpt_small(), {.branches = true}).find("found none"), std::string::npos);
}

}  // namespace lockstep::exec
