// From a job's model to a graph: places of mistakes, and what metrics take from the loss.
#include "graph/model_graph.hpp"

#include <gtest/gtest.h>

#include "lockstep/error.hpp"

namespace lockstep {

namespace {

OpDef model_toy(const std::string& name, OpKind kind) {
  OpDef op;
  op.name = name;
  op.kind = kind;
  op.min_inputs = op.max_inputs = kind == OpKind::layer ? 1 : 2;
  op.attributes = {{.name = "ignored_index", .kind = AttributeKind::integer, .doc = "", .optional = true}};
  op.infer = [kind](const Attributes&, std::span<const TensorSpec> in) {
    if (kind == OpKind::layer && in[0].shape.size() != 2) throw Error(ExitCode::configuration, "expected a row");
    Signature signature;
    signature.outputs = {in[0]};
    return signature;
  };
  return op;
}

struct Request {
  Request() {
    ops.add(model_toy("act", OpKind::layer));
    ops.add(model_toy("loss", OpKind::loss));
    ops.add(model_toy("score", OpKind::metric));
    OpDef plain = model_toy("plain", OpKind::metric);
    plain.attributes.clear();
    ops.add(plain);
    model.layers = {{.op = "act"}};
    loss.kind = "loss";
  }
  Graph build(Shape sample = {4}) {
    return build_model_graph({.model = &model,
                              .loss = &loss,
                              .metrics = {"score", "plain"},
                              .features = {{"image", Feature::Kind::image, {DType::f32, std::move(sample)}},
                                           {"label", Feature::Kind::label, {DType::i32, {}}}},
                              .batch = 2},
                             ops, {});
  }
  OpRegistry ops;
  ModelOptions model;
  LossOptions loss;
};

std::string message_of(Request& request) {
  try {
    (void)request.build({4, 4});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST(ModelGraph, AMistakeHasItsPlaceAlsoOnTheCommandLine) {
  Request request;
  EXPECT_EQ(message_of(request), "layer 'act1': expected a row");
  request.model.layers[0].place = {"job.yaml", 7, 3, "job.model.layers[0]"};
  EXPECT_EQ(message_of(request), "job.yaml:7:3: job.model.layers[0]: layer 'act1': expected a row");
  request.model.layers[0].place = {"command line", 0, 0, "model.layers[0]"};
  EXPECT_EQ(message_of(request), "command line: model.layers[0]: layer 'act1': expected a row");
}

TEST(ModelGraph, MetricsIgnoreWhatTheLossIgnores) {
  Request request;
  const Graph without = request.build();
  EXPECT_FALSE(without.nodes.at(static_cast<std::size_t>(without.metrics.at(0))).attributes.has("ignored_index"));
  request.loss.attributes.set("ignored_index", std::int64_t{3});
  const Graph graph = request.build();
  EXPECT_EQ(graph.nodes.at(static_cast<std::size_t>(graph.metrics.at(0))).attributes.integer("ignored_index"), 3);
  EXPECT_FALSE(graph.nodes.at(static_cast<std::size_t>(graph.metrics.at(1))).attributes.has("ignored_index"));
}

TEST(ModelGraph, LayersSayTheirBlockAndPart) {
  Request request;
  request.model.layers = {
      {.op = "act"}, {.op = "act", .block = "first", .part = "body"}, {.op = "act", .part = "head"}};
  const Graph graph = request.build();
  EXPECT_EQ(graph.nodes[0].part, "");
  EXPECT_EQ(graph.nodes[1].block, "first");
  EXPECT_EQ(graph.nodes[1].part, "body");
  EXPECT_EQ(graph.nodes[2].block, "");
  EXPECT_EQ(graph.nodes[2].part, "head");
  EXPECT_EQ(graph.nodes[3].part, "") << "the loss belongs to what comes before it";
}

}  // namespace lockstep
