// What lowering does to small graphs. train/world_size_test.cpp checks that it changes no bit of a training run.
#include "graph/lowering/lower.hpp"

#include <gtest/gtest.h>

#include "graph/program.hpp"
#include "lockstep/graph_builder.hpp"

namespace lockstep {

namespace {

OpDef lowered_toy(const std::string& name, int inputs) {
  OpDef op;
  op.name = name;
  op.min_inputs = op.max_inputs = inputs;
  op.infer = [](const Attributes&, std::span<const TensorSpec> in) {
    Signature signature;
    signature.outputs = {in[0]};
    return signature;
  };
  return op;
}

OpDef lowered_loss() {
  OpDef loss = lowered_toy("loss", 1);
  loss.kind = OpKind::loss;
  loss.infer = [](const Attributes&, std::span<const TensorSpec> in) {
    Signature signature;
    signature.outputs = {{DType::f32, {in[0].shape[0]}}, {DType::f32, {in[0].shape[0]}}};
    return signature;
  };
  return loss;
}

/// "norm" and "sum" accept "act" as their epilogue, "norm" on the CPU only.
OpRegistry lowered_toys() {
  OpRegistry ops;
  OpDef norm = lowered_toy("norm", 1);
  norm.infer = [](const Attributes&, std::span<const TensorSpec> in) {
    Signature signature;
    signature.outputs = {in[0]};
    signature.parameters = {{"weight", {in[0].shape.back()}, Initializer::ones()}};
    return signature;
  };
  norm.epilogues[DeviceKind::cpu] = {"act"};
  ops.add(norm);
  OpDef sum = lowered_toy("sum", 2);
  sum.passes_gradient = true;
  sum.epilogues[DeviceKind::cpu] = {"act"};
  ops.add(sum);
  ops.add(lowered_toy("act", 1));
  ops.add(lowered_loss());
  return ops;
}

std::vector<std::string> names(const Graph& graph) {
  std::vector<std::string> list;
  for (const Node& node : graph.nodes) {
    list.push_back(node.epilogue == nullptr ? node.name : node.name + "+" + node.epilogue->name);
  }
  return list;
}

using Names = std::vector<std::string>;

class Lowering : public testing::Test {
 protected:
  Graph take() { return std::move(builder_.graph()); }
  OpRegistry ops_ = lowered_toys();
  GraphBuilder builder_{ops_, 2};
  ValueId x_ = builder_.input("x", {DType::f32, {3}});
};

TEST_F(Lowering, AnOpThatIsAppliedToOneOutputOnlyIsFused) {
  ValueId x = builder_.apply("norm", {x_});
  x = builder_.apply("act", {x});
  x = builder_.apply("norm", {x}, {}, "last");
  builder_.graph().output = x;
  builder_.graph().loss = builder_.add_node("loss", {x}, {}, "loss");
  const Graph graph = lower(take(), {DeviceKind::cpu});
  EXPECT_EQ(names(graph), (Names{"norm1+act", "last", "loss"}));
  EXPECT_EQ(graph.loss, 2);
  EXPECT_EQ(graph.at(graph.nodes[1].inputs[0]).name, "act1") << "what the epilogue made keeps its name";
  EXPECT_EQ(graph.at(graph.nodes[1].inputs[0]).producer, 0);
  EXPECT_EQ(graph.at(graph.output).producer, 1);
}

TEST_F(Lowering, AnOutputThatOthersReadStays) {
  const ValueId between = builder_.apply("norm", {x_});
  const ValueId act = builder_.apply("act", {between});
  builder_.graph().output = builder_.apply("sum", {act, between});
  EXPECT_EQ(names(lower(take(), {DeviceKind::cpu})), (Names{"norm1", "act1", "sum1"}));
}

TEST_F(Lowering, TheResultOfTheGraphStays) {
  builder_.graph().output = builder_.apply("norm", {x_});
  builder_.graph().loss = builder_.add_node("loss", {builder_.apply("act", {builder_.graph().output})}, {}, "loss");
  EXPECT_EQ(names(lower(take(), {DeviceKind::cpu})), (Names{"norm1", "act1", "loss"}));
}

TEST_F(Lowering, OneEpilogueOnlyAndOnlyWhereTheKernelHasIt) {
  builder_.graph().output = builder_.apply("act", {builder_.apply("act", {builder_.apply("norm", {x_})})});
  const Graph graph = take();
  EXPECT_EQ(names(lower(graph, {DeviceKind::cpu})), (Names{"norm1+act", "act2"}));
  EXPECT_EQ(names(lower(graph, {DeviceKind::cuda})), (Names{"norm1", "act1", "act2"}));
}

// Both inputs of the sum get the single gradient from before the epilogue.
TEST_F(Lowering, OneGradientIsMadeForAllInputsOfASum) {
  const ValueId left = builder_.apply("norm", {x_}), right = builder_.apply("norm", {x_});
  const ValueId sum = builder_.apply("act", {builder_.apply("sum", {left, right})});
  builder_.graph().output = sum;
  builder_.graph().loss = builder_.add_node("loss", {sum}, {}, "loss");
  const Graph graph = lower(take(), {DeviceKind::cpu});
  const Program program = compile(graph, Mode::training, [](std::int32_t) { return std::size_t{0}; });
  std::vector<Instruction> backward;
  for (const auto& instruction : program.instructions) {
    if (instruction.kind == Instruction::Kind::backward) backward.push_back(instruction);
  }
  ASSERT_EQ(backward.size(), 4U);  // loss, sum, right, left
  EXPECT_EQ(backward[1].outputs[0].space, Space::arena) << "an epilogue's backward sees what it made";
  EXPECT_EQ(backward[1].input_gradients[1].space, Space::none);
  EXPECT_EQ(backward[2].output_gradients[0], backward[1].input_gradients[0]);
  EXPECT_EQ(backward[3].output_gradients[0], backward[1].input_gradients[0]);
}

/// linear and gelu in as much detail as lowering looks at, and what it turns them into.
OpRegistry gelu_toys() {
  OpRegistry ops;
  OpDef linear = lowered_toy("linear", 1);
  linear.attributes = {{.name = "tied", .kind = AttributeKind::text, .doc = "-", .optional = true}};
  linear.infer = [](const Attributes&, std::span<const TensorSpec> in) {
    Signature signature;
    signature.outputs = {in[0]};
    signature.parameters = {{"weight", {3, 3}, Initializer::ones()}, {"bias", {3}, Initializer::zeros()}};
    return signature;
  };
  linear.backward_reads = {.inputs = true, .outputs = false};
  OpDef linear_gelu = linear, gelu_linear = linear;
  linear_gelu.name = "linear_gelu";
  gelu_linear.name = "gelu_linear";
  gelu_linear.constant_inputs = {0};
  OpDef gelu = lowered_toy("gelu", 1);
  gelu.attributes = {
      {.name = "approximate", .kind = AttributeKind::text, .doc = "-", .default_value = std::string("tanh")}};
  for (const OpDef& op : {linear, linear_gelu, gelu_linear, gelu, lowered_loss(), lowered_toy("sum", 2)}) ops.add(op);
  return ops;
}

class FuseGelu : public testing::Test {
 protected:
  ValueId linear(ValueId x, const std::string& name) { return builder_.apply("linear", {x}, {}, name); }
  ValueId gelu(ValueId x) { return builder_.apply("gelu", {x}); }
  /// "name op" of each node as lowered for GPUs; `output` is the model's.
  Names ops_of(ValueId output) {
    builder_.graph().output = output;
    Names list;
    for (const Node& node : lower(builder_.graph(), {DeviceKind::cuda, &ops_}).nodes) {
      list.push_back(node.name + " " + node.op->name);
    }
    return list;
  }
  OpRegistry ops_ = gelu_toys();
  GraphBuilder builder_{ops_, 2};
  ValueId x_ = builder_.input("x", {DType::f32, {3}});
};

TEST_F(FuseGelu, BetweenTwoLinearLayers) {
  const ValueId pre = linear(x_, "up"), y = gelu(pre), z = linear(y, "down");
  builder_.graph().output = z;
  builder_.graph().loss = builder_.add_node("loss", {z}, {}, "loss");
  const Graph before = builder_.graph(), graph = lower(before, {DeviceKind::cuda, &ops_});
  ASSERT_EQ(names(graph), (Names{"up", "down", "loss"}));
  const Node &up = graph.nodes[0], &down = graph.nodes[1];
  EXPECT_EQ(up.op->name, "linear_gelu");
  EXPECT_EQ(up.outputs, (std::vector<ValueId>{pre, y}));
  EXPECT_EQ(down.op->name, "gelu_linear");
  EXPECT_EQ(down.inputs, (std::vector<ValueId>{y, pre}));
  EXPECT_EQ(graph.at(pre).producer, 0);
  EXPECT_EQ(graph.at(y).producer, 0);
  EXPECT_EQ(graph.at(y).name, "gelu1");
  EXPECT_EQ(graph.at(z).producer, 1);
  EXPECT_EQ(graph.loss, 2);
  EXPECT_EQ(graph.parameters, before.parameters);
  EXPECT_EQ(up.parameters, before.nodes[0].parameters);
  EXPECT_EQ(down.parameters, before.nodes[2].parameters);
}

TEST_F(FuseGelu, TheGradientPassesByGelusOutput) {
  const ValueId z = linear(gelu(linear(linear(x_, "first"), "up")), "down");
  builder_.graph().output = z;
  builder_.graph().loss = builder_.add_node("loss", {z}, {}, "loss");
  const Program program = compile(lower(builder_.graph(), {DeviceKind::cuda, &ops_}), Mode::training,
                                  [](std::int32_t) { return std::size_t{0}; });
  std::vector<Instruction> backward, forward;
  for (const auto& instruction : program.instructions) {
    (instruction.kind == Instruction::Kind::backward ? backward : forward).push_back(instruction);
  }
  ASSERT_EQ(backward.size(), 4U);  // loss, down, up, first
  EXPECT_EQ(backward[1].input_gradients[0].space, Space::none);
  ASSERT_EQ(backward[2].output_gradients.size(), 1U);
  EXPECT_EQ(backward[2].output_gradients[0], backward[1].input_gradients[1]);
  EXPECT_EQ(backward[1].inputs, (std::vector<Location>{forward[1].outputs[1], forward[1].outputs[0]}))
      << "gelu's output and what it was taken of are kept for backward";
}

TEST_F(FuseGelu, OnGpusOnlyAndOnlyWhereTheOpsAreThere) {
  builder_.graph().output = linear(gelu(linear(x_, "up")), "down");
  const OpRegistry others = lowered_toys();
  const Names before = {"up", "gelu1", "down"};
  EXPECT_EQ(names(lower(builder_.graph(), {DeviceKind::cpu, &ops_})), before);
  EXPECT_EQ(names(lower(builder_.graph(), {DeviceKind::cuda, &others})), before);
  EXPECT_EQ(names(lower(builder_.graph(), {DeviceKind::cuda})), before);
}

TEST_F(FuseGelu, EachOfSeveral) {
  const ValueId first = linear(gelu(linear(x_, "up1")), "down1");
  EXPECT_EQ(ops_of(linear(gelu(linear(first, "up2")), "down2")),
            (Names{"up1 linear_gelu", "down1 gelu_linear", "up2 linear_gelu", "down2 gelu_linear"}));
}

TEST_F(FuseGelu, ALayerIsFusedOnOneSideOnly) {
  EXPECT_EQ(ops_of(linear(gelu(linear(gelu(linear(x_, "a")), "b")), "c")),
            (Names{"a linear_gelu", "b gelu_linear", "gelu2 gelu", "c linear"}));
}

TEST_F(FuseGelu, WhatOthersReadStays) {
  const ValueId pre = linear(x_, "up"), z = linear(gelu(pre), "down");
  EXPECT_EQ(ops_of(builder_.apply("sum", {z, pre})), (Names{"up linear", "gelu1 gelu", "down linear", "sum1 sum"}));
}

TEST_F(FuseGelu, WhatOthersReadOfGeluStays) {
  const ValueId y = gelu(linear(x_, "up")), z = linear(y, "down");
  EXPECT_EQ(ops_of(builder_.apply("sum", {z, y})), (Names{"up linear", "gelu1 gelu", "down linear", "sum1 sum"}));
}

TEST_F(FuseGelu, TheModelsOutputStays) {
  const ValueId y = gelu(linear(x_, "up"));
  (void)linear(y, "down");
  EXPECT_EQ(ops_of(y), (Names{"up linear", "gelu1 gelu", "down linear"}));
}

TEST_F(FuseGelu, ExactGeluStays) {
  const ValueId y = builder_.apply("gelu", {linear(x_, "up")}, Attributes({{"approximate", std::string("none")}}));
  EXPECT_EQ(ops_of(linear(y, "down")), (Names{"up linear", "gelu1 gelu", "down linear"}));
}

TEST_F(FuseGelu, TiedWeightsStay) {
  const ValueId y = gelu(linear(x_, "up"));
  const ValueId z = builder_.apply("linear", {y}, Attributes({{"tied", std::string("up")}}), "down");
  EXPECT_EQ(ops_of(z), (Names{"up linear", "gelu1 gelu", "down linear"}));
}

TEST_F(FuseGelu, WhereThereIsNoGelu) {
  EXPECT_EQ(ops_of(linear(linear(x_, "up"), "down")), (Names{"up linear", "down linear"}));
  EXPECT_EQ(ops_of(gelu(linear(x_, "last"))), (Names{"up linear", "down linear", "last linear", "gelu1 gelu"}));
}

/// A "conv" of 2 channels has channels last on GPUs, a "twin" never.
class OrderWeights : public testing::Test {
 protected:
  OrderWeights() {
    for (const char* name : {"conv", "twin"}) {
      OpDef op = lowered_toy(name, 1);
      op.attributes = {{.name = "taps", .kind = AttributeKind::integer, .doc = "a side of the kernel"}};
      op.infer = [](const Attributes& attributes, std::span<const TensorSpec> in) {
        Signature signature;
        signature.outputs = {in[0]};
        const std::int64_t taps = attributes.integer("taps");
        signature.parameters = {{"weight", {4, 2, taps, taps}, Initializer::ones()},
                                {"bias", {4}, Initializer::zeros()}};
        return signature;
      };
      if (op.name == "conv") op.channels_last = {DeviceKind::cuda};
      ops_.add(std::move(op));
    }
  }
  ValueId apply(const char* op, const char* name, std::int64_t taps) {
    return builder_.apply(op, {builder_.graph().inputs[0]}, Attributes({{"taps", taps}}), name);
  }
  std::vector<std::string> ordered(DeviceKind device = DeviceKind::cuda) {
    const Graph graph = lower(builder_.graph(), {device, &ops_});
    std::vector<std::string> found;
    for (const ValueId id : graph.parameters) {
      if (graph.at(id).channels_last) found.push_back(graph.at(id).name);
    }
    return found;
  }

  OpRegistry ops_;
  GraphBuilder builder_{ops_, 2};
  ValueId x_ = builder_.input("x", {DType::f32, {3}});
};

TEST_F(OrderWeights, OfConvolutionsWithSeveralTapsOnGpus) {
  (void)apply("conv", "three", 3);
  (void)apply("conv", "one", 1);
  (void)apply("twin", "other", 3);
  EXPECT_EQ(ordered(), (Names{"three.weight"}));
  EXPECT_EQ(ordered(DeviceKind::cpu), Names{});
}

TEST_F(OrderWeights, NotForAKernelOfYourOwn) {
  (void)apply("conv", "three", 3);
  ops_.add_kernel("conv", DeviceKind::cuda, {});
  EXPECT_EQ(ordered(), Names{});
}

TEST_F(OrderWeights, OfWhatAllReadersWantSo) {
  (void)apply("conv", "both", 3);
  (void)apply("conv", "mixed", 3);
  auto& nodes = builder_.graph().nodes;
  Node again = nodes[0], twin = nodes[1];
  twin.op = &ops_.at("twin");
  nodes.push_back(again);
  nodes.push_back(twin);
  EXPECT_EQ(ordered(), (Names{"both.weight"}));
}

}  // namespace

}  // namespace lockstep
