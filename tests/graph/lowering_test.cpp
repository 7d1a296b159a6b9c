// What lowering makes of small graphs. That it changes no bit of a training: train/world_size_test.cpp.
#include "graph/lowering/lower.hpp"

#include <gtest/gtest.h>

#include "graph/program.hpp"
#include "lockstep/graph_builder.hpp"

namespace lockstep {

namespace {

OpDef toy(const std::string& name, int inputs) {
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

/// "norm" and "sum" take "act" as their epilogue, "norm" on the CPU only.
OpRegistry toys() {
  OpRegistry ops;
  OpDef norm = toy("norm", 1);
  norm.infer = [](const Attributes&, std::span<const TensorSpec> in) {
    Signature signature;
    signature.outputs = {in[0]};
    signature.parameters = {{"weight", {in[0].shape.back()}, Initializer::ones()}};
    return signature;
  };
  norm.epilogues[DeviceKind::cpu] = {"act"};
  ops.add(norm);
  OpDef sum = toy("sum", 2);
  sum.passes_gradient = true;
  sum.epilogues[DeviceKind::cpu] = {"act"};
  ops.add(sum);
  ops.add(toy("act", 1));
  OpDef loss = toy("loss", 1);
  loss.kind = OpKind::loss;
  loss.infer = [](const Attributes&, std::span<const TensorSpec> in) {
    Signature signature;
    signature.outputs = {{DType::f32, {in[0].shape[0]}}, {DType::f32, {in[0].shape[0]}}};
    return signature;
  };
  ops.add(loss);
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
  OpRegistry ops_ = toys();
  GraphBuilder builder_{ops_, 2};
  ValueId x_ = builder_.input("x", {DType::f32, {3}});
};

TEST_F(Lowering, AnOpThatIsAppliedToOneOutputOnlyIsFused) {
  ValueId x = builder_.apply("norm", {x_});
  x = builder_.apply("act", {x});
  x = builder_.apply("norm", {x}, {}, "last");
  builder_.graph().output = x;
  builder_.graph().loss = builder_.add_node("loss", {x}, {}, "loss");
  const Graph graph = lower(take(), DeviceKind::cpu);
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
  EXPECT_EQ(names(lower(take(), DeviceKind::cpu)), (Names{"norm1", "act1", "sum1"}));
}

TEST_F(Lowering, TheResultOfTheGraphStays) {
  builder_.graph().output = builder_.apply("norm", {x_});
  builder_.graph().loss = builder_.add_node("loss", {builder_.apply("act", {builder_.graph().output})}, {}, "loss");
  EXPECT_EQ(names(lower(take(), DeviceKind::cpu)), (Names{"norm1", "act1", "loss"}));
}

TEST_F(Lowering, OneEpilogueOnlyAndOnlyWhereTheKernelHasIt) {
  builder_.graph().output = builder_.apply("act", {builder_.apply("act", {builder_.apply("norm", {x_})})});
  const Graph graph = take();
  EXPECT_EQ(names(lower(graph, DeviceKind::cpu)), (Names{"norm1+act", "act2"}));
  EXPECT_EQ(names(lower(graph, DeviceKind::cuda)), (Names{"norm1", "act1", "act2"}));
}

// Both inputs of the sum get the one gradient that lies before the epilogue.
TEST_F(Lowering, OneGradientIsMadeForAllInputsOfASum) {
  const ValueId left = builder_.apply("norm", {x_}), right = builder_.apply("norm", {x_});
  const ValueId sum = builder_.apply("act", {builder_.apply("sum", {left, right})});
  builder_.graph().output = sum;
  builder_.graph().loss = builder_.add_node("loss", {sum}, {}, "loss");
  const Graph graph = lower(take(), DeviceKind::cpu);
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

}  // namespace

}  // namespace lockstep
