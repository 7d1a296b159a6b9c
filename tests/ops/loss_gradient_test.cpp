// When lowering lets a loss round its gradient for the products of the last layer, and what a program makes of it.
#include <gtest/gtest.h>

#include <algorithm>

#include "graph/lowering/lower.hpp"
#include "graph/parts.hpp"
#include "graph/precision.hpp"
#include "graph/program.hpp"
#include "lockstep/graph_builder.hpp"
#include "ops/registry.hpp"

namespace lockstep {

namespace {

constexpr std::int64_t kSamples = 6, kClasses = 10, kGap = 6;

/// Two linear layers and a loss of the second one's output.
class RoundLossGradient : public testing::Test {
 protected:
  RoundLossGradient() {
    ops::add_built_in(ops_);
    for (const OpDef* op : ops_.all()) kernels_.add(*op);
    x_ = builder_.input("x", {DType::f32, {4}});
    labels_ = builder_.input("labels", {DType::i32, {}});
  }
  ValueId linear(ValueId x, const std::string& name, std::int64_t features = kClasses) {
    return builder_.apply("linear", {x}, Attributes({{"features", features}}), name);
  }
  void lose(ValueId scores, const std::string& loss = "cross_entropy") {
    builder_.graph().output = scores;
    builder_.graph().loss = builder_.add_node(loss, {scores, labels_}, {}, "loss");
  }
  Graph lowered(DType precision = DType::bf16, DeviceKind device = DeviceKind::cuda) {
    Graph graph = builder_.graph();
    set_precision(graph, precision);
    return lower(std::move(graph), {device, &kernels_});
  }
  RoundedGradient found(DType precision = DType::bf16, DeviceKind device = DeviceKind::cuda) {
    const Graph graph = lowered(precision, device);
    const Value& scores = graph.at(graph.nodes[static_cast<std::size_t>(graph.loss)].inputs[0]);
    return scores.rounded_gradient;
  }
  static std::vector<Instruction> backward(const Program& program) {
    std::vector<Instruction> list;
    for (const auto& instruction : program.instructions) {
      if (instruction.kind == Instruction::Kind::backward) list.push_back(instruction);
    }
    return list;
  }

  OpRegistry ops_, kernels_;  ///< of the graph; of the device
  GraphBuilder builder_{ops_, kSamples};
  ValueId x_ = -1, labels_ = -1;
};

const RoundedGradient kNone, kRounded{DType::bf16, kGap};

}  // namespace

TEST_F(RoundLossGradient, InBf16OnGpus) {
  lose(linear(linear(x_, "first"), "last"));
  EXPECT_EQ(found(), kRounded);
  EXPECT_EQ(found(DType::f16), kNone) << "its scale comes before the rounding";
  EXPECT_EQ(found(DType::f32), kNone);
  EXPECT_EQ(found(DType::bf16, DeviceKind::cpu), kNone);
}

TEST_F(RoundLossGradient, ARowThatIsAMultipleOfEightHasNoGap) {
  lose(linear(x_, "last", 16));
  EXPECT_EQ(found(), (RoundedGradient{DType::bf16, 0}));
}

TEST_F(RoundLossGradient, AMetricReadsTheScoresAndNoGradient) {
  const ValueId scores = linear(x_, "last");
  lose(scores);
  builder_.graph().metrics.push_back(builder_.add_node("accuracy", {scores, labels_}, {}, "accuracy"));
  EXPECT_EQ(found(), kRounded);
}

TEST_F(RoundLossGradient, NotWhereAnotherLayerIsTheLast) {
  lose(builder_.apply("relu", {linear(x_, "last")}));
  EXPECT_EQ(found(), kNone);
}

TEST_F(RoundLossGradient, NotByAKernelOfYourOwn) {
  lose(linear(x_, "last"));
  ops_.add_kernel("cross_entropy", DeviceKind::cuda, {});
  EXPECT_EQ(found(), kNone);
}

TEST_F(RoundLossGradient, NotByADeviceWhoseKernelsCannot) {
  lose(linear(x_, "last"));
  kernels_.add_kernel("linear", DeviceKind::cuda, {}, true);
  EXPECT_EQ(found(), kNone);
  kernels_.add_kernel("linear", DeviceKind::cuda, {}, true, true);
  EXPECT_EQ(found(), kRounded);
}

// As many bytes as the scores, which the gradient would otherwise overwrite where its elements are not those it reads.
TEST_F(RoundLossGradient, ItHasMemoryOfItsOwn) {
  constexpr std::int64_t kFew = 4;  // and a gap of as many, in half the bytes
  lose(linear(x_, "last", kFew));
  ASSERT_EQ(found(), (RoundedGradient{DType::bf16, kFew}));
  const Program program = compile(lowered(), Mode::training, [](std::int32_t) { return std::size_t{0}; });
  const auto list = backward(program);
  ASSERT_EQ(list.size(), 2U);
  EXPECT_NE(list[0].input_gradients[0], list[0].inputs[0]);
  EXPECT_EQ(list[1].output_gradients[0], list[0].input_gradients[0]);
}

TEST_F(RoundLossGradient, WhatGoesToAnotherPartIsLikeTheValue) {
  lose(linear(linear(x_, "first"), "last"));
  const Graph graph = lowered();
  const auto rounded = [](const GraphPart& part) {
    return std::any_of(part.graph.values.begin(), part.graph.values.end(),
                       [](const Value& value) { return value.rounded_gradient.rounds(); });
  };
  const auto together = split(graph, {0, 1, 1}), apart = split(graph, {0, 0, 1});
  EXPECT_FALSE(rounded(together[0]));
  EXPECT_TRUE(rounded(together[1]));
  EXPECT_FALSE(rounded(apart[0]));
  EXPECT_FALSE(rounded(apart[1]));
}

}  // namespace lockstep
