#include <gtest/gtest.h>

#include "graph/model_graph.hpp"
#include "graph/program.hpp"
#include "lockstep/error.hpp"
#include "lockstep/graph_builder.hpp"

namespace lockstep {

namespace {

OpDef compiled_toy(const std::string& name, int inputs, bool weight) {
  OpDef op;
  op.name = name;
  op.min_inputs = op.max_inputs = inputs;
  op.attributes = {{.name = "tied", .kind = AttributeKind::text, .doc = "", .optional = true}};
  op.infer = [weight](const Attributes&, std::span<const TensorSpec> in) {
    Signature signature;
    signature.outputs = {in[0]};
    if (weight) signature.parameters = {{"weight", {in[0].shape.back()}, Initializer::ones()}};
    return signature;
  };
  return op;
}

OpRegistry compiled_toys() {
  OpRegistry ops;
  ops.add(compiled_toy("scale", 1, true));
  ops.add(compiled_toy("act", 1, false));
  OpDef sum = compiled_toy("sum", 2, false);
  sum.passes_gradient = true;
  ops.add(sum);
  OpDef view = compiled_toy("view", 1, false);
  view.view = true;
  ops.add(view);
  OpDef loss = compiled_toy("loss", 2, false);
  loss.kind = OpKind::loss;
  loss.constant_inputs = {1};
  loss.infer = [](const Attributes&, std::span<const TensorSpec> in) {
    Signature signature;
    signature.outputs = {{DType::f32, {in[0].shape[0]}}, {DType::f32, {in[0].shape[0]}}};
    return signature;
  };
  ops.add(loss);
  return ops;
}

/// With norm and curve, whose backward reads their inputs.
OpRegistry toys_that_read_inputs() {
  OpRegistry ops = compiled_toys();
  for (const char* name : {"norm", "curve"}) {
    OpDef op = compiled_toy(name, 1, true);
    op.backward_reads = {.inputs = true, .outputs = false};
    ops.add(op);
  }
  return ops;
}

std::size_t none(std::int32_t /*node*/) {
  return 0;
}

int count(const Program& program, Instruction::Kind kind) {
  int n = 0;
  for (const auto& instruction : program.instructions) n += instruction.kind == kind ? 1 : 0;
  return n;
}

}  // namespace

TEST(Compile, ResidualGradientIsSummedOnce) {
  const OpRegistry ops = compiled_toys();
  GraphBuilder b(ops, 4);
  const ValueId x = b.apply("scale", {b.input("x", {DType::f32, {8}})});
  const ValueId y = b.input("y", {DType::f32, {8}});
  const ValueId branch = b.apply("scale", {b.apply("act", {x})});
  b.graph().output = b.apply("sum", {b.apply("view", {branch}), x});
  b.graph().loss = b.add_node("loss", {b.graph().output, y}, {}, "loss");
  const Program program = compile(b.graph(), Mode::training, none);

  EXPECT_EQ(count(program, Instruction::Kind::forward), 5);   // the view runs no kernel
  EXPECT_EQ(count(program, Instruction::Kind::backward), 4);  // loss, scale2, act, scale1; sum and view only rename
  EXPECT_EQ(count(program, Instruction::Kind::add), 1);       // x is used twice
  ASSERT_EQ(program.slots.size(), 2u);
  EXPECT_EQ(program.slots[0].target, 1) << "the later layer's gradient is complete first";
  // The data inputs get no gradient.
  EXPECT_EQ(program.instructions.back().input_gradients.at(0).space, Space::none);
}

TEST(Compile, AKernelThatCanAddsItsGradientToTheOthers) {
  const OpRegistry ops = compiled_toys();
  GraphBuilder b(ops, 4);
  const ValueId x = b.apply("scale", {b.input("x", {DType::f32, {8}})});
  const ValueId branch = b.apply("scale", {b.apply("act", {x})});
  b.graph().output = b.apply("sum", {branch, x});
  b.graph().loss = b.add_node("loss", {b.graph().output, b.input("y", {DType::f32, {8}})}, {}, "loss");
  const auto is_act = [&](std::int32_t node) {
    return b.graph().nodes[static_cast<std::size_t>(node)].op->name == "act";
  };
  const Program program = compile(b.graph(), Mode::training, none, {.adds_input_gradient = is_act});
  EXPECT_EQ(count(program, Instruction::Kind::add), 0);
  ASSERT_EQ(count(program, Instruction::Kind::backward), 4);  // loss, scale2, act, scale1
  const Instruction& act = program.instructions[program.instructions.size() - 2];
  const Instruction& loss = program.instructions[program.instructions.size() - 4];
  EXPECT_EQ(act.input_gradient_term, loss.input_gradients[0]);
  EXPECT_EQ(program.instructions.back().output_gradients[0], act.input_gradients[0]);
  EXPECT_EQ(act.input_gradients[0], act.input_gradient_term) << "in place, where that is read for the last time";
}

// What act makes is the gradient of both terms of a sum: nothing may be added to it for one of them.
TEST(Compile, AGradientThatOthersShareStays) {
  const OpRegistry ops = compiled_toys();
  GraphBuilder b(ops, 4);
  const ValueId x = b.apply("scale", {b.input("x", {DType::f32, {8}})});
  const ValueId y = b.apply("scale", {x});
  const ValueId act = b.apply("act", {b.apply("sum", {x, y})});
  b.graph().output = b.apply("sum", {act, x});
  b.graph().loss = b.add_node("loss", {b.graph().output, b.input("y", {DType::f32, {8}})}, {}, "loss");
  const auto all = [](std::int32_t /*node*/) { return true; };
  const Program program = compile(b.graph(), Mode::training, none, {.adds_input_gradient = all});
  EXPECT_EQ(count(program, Instruction::Kind::add), 1) << "act's gradient and the loss's, for x alone";
  const Instruction& scale = program.instructions[program.instructions.size() - 2];
  EXPECT_NE(scale.input_gradient_term.space, Space::none) << "y's own";
}

TEST(Compile, AKernelThatCanTakesTheTermsOfItsGradient) {
  const OpRegistry ops = compiled_toys();
  GraphBuilder b(ops, 4);
  const ValueId x = b.apply("act", {b.apply("scale", {b.input("x", {DType::f32, {8}})})});
  const ValueId branch = b.apply("scale", {x});
  b.graph().output = b.apply("sum", {branch, x});
  b.graph().loss = b.add_node("loss", {b.graph().output, b.input("y", {DType::f32, {8}})}, {}, "loss");
  const auto is_act = [&](std::int32_t node) {
    return b.graph().nodes[static_cast<std::size_t>(node)].op->name == "act";
  };
  const Program program = compile(b.graph(), Mode::training, none, {.adds_output_gradients = is_act});
  EXPECT_EQ(count(program, Instruction::Kind::add), 0);
  ASSERT_EQ(count(program, Instruction::Kind::backward), 4);  // loss, scale2, act, scale1
  const auto end = program.instructions.end();
  const Instruction &loss = end[-4], &scale = end[-3], &act = end[-2];
  EXPECT_EQ(act.output_gradients[0], loss.input_gradients[0]);
  EXPECT_EQ(act.output_gradient_term, scale.input_gradients[0]);
}

// The sum is the gradient of both terms of an addition.
TEST(Compile, ASumThatOthersReadIsMade) {
  const OpRegistry ops = compiled_toys();
  GraphBuilder b(ops, 4);
  const ValueId x = b.apply("scale", {b.input("x", {DType::f32, {8}})});
  const ValueId sum = b.apply("sum", {b.apply("act", {x}), b.apply("act", {x})});
  b.graph().output = b.apply("sum", {b.apply("scale", {sum}), sum});
  b.graph().loss = b.add_node("loss", {b.graph().output, b.input("y", {DType::f32, {8}})}, {}, "loss");
  const auto is_act = [&](std::int32_t node) {
    return b.graph().nodes[static_cast<std::size_t>(node)].op->name == "act";
  };
  const Program program = compile(b.graph(), Mode::training, none, {.adds_output_gradients = is_act});
  EXPECT_EQ(count(program, Instruction::Kind::add), 2);
}

TEST(Compile, TiedWeightHasOneSlotAUse) {
  const OpRegistry ops = compiled_toys();
  GraphBuilder b(ops, 4);
  ValueId x = b.apply("scale", {b.input("x", {DType::f32, {8}})}, {}, "first");
  x = b.apply("scale", {x}, Attributes({{"tied", std::string("first")}}));
  b.graph().output = x;
  b.graph().loss = b.add_node("loss", {x, b.input("y", {DType::f32, {8}})}, {}, "loss");
  EXPECT_EQ(b.graph().parameters.size(), 1u);
  const Program program = compile(b.graph(), Mode::training, none);
  ASSERT_EQ(program.slots.size(), 2u);
  EXPECT_EQ(program.slots[0].target, program.slots[1].target);
}

TEST(Compile, FrozenPartsRunNoBackward) {
  const OpRegistry ops = compiled_toys();
  GraphBuilder b(ops, 4);
  ValueId x = b.apply("scale", {b.input("x", {DType::f32, {8}})}, {}, "frozen");
  x = b.apply("scale", {b.apply("act", {x})});
  b.graph().values[static_cast<std::size_t>(b.graph().parameters[0])].frozen = true;
  b.graph().output = x;
  b.graph().loss = b.add_node("loss", {x, b.input("y", {DType::f32, {8}})}, {}, "loss");
  const Program program = compile(b.graph(), Mode::training, none);
  EXPECT_EQ(count(program, Instruction::Kind::backward), 2);  // loss and the second scale
  EXPECT_EQ(program.slots.size(), 1u);
}

TEST(Compile, InferenceNeedsLessMemory) {
  const OpRegistry ops = compiled_toys();
  GraphBuilder b(ops, 64);
  ValueId x = b.input("x", {DType::f32, {128}});
  for (int i = 0; i < 10; ++i) x = b.apply("scale", {x});
  b.graph().output = x;
  b.graph().loss = b.add_node("loss", {x, b.input("y", {DType::f32, {128}})}, {}, "loss");
  const Program training = compile(b.graph(), Mode::training, none);
  const Program inference = compile(b.graph(), Mode::inference, none);
  EXPECT_LE(inference.arena_bytes, 3 * 64 * 128 * 4);
  EXPECT_LT(inference.arena_bytes, training.arena_bytes);
  EXPECT_TRUE(inference.slots.empty());
}

// x -> scale -> act -> act: in inference all acts share one place; training keeps what a scale read.
TEST(Compile, KernelsWriteOverWhatNobodyReadsAnyMore) {
  OpRegistry ops = compiled_toys();
  OpDef calm = compiled_toy("calm", 1, false);
  calm.backward_reads = {};
  calm.in_place = {.forward = true, .over_gradient = true, .over_input = false};
  ops.add(calm);
  GraphBuilder b(ops, 16);
  ValueId x = b.apply("scale", {b.input("x", {DType::f32, {64}})});
  for (int i = 0; i < 3; ++i) x = b.apply("calm", {x});
  b.graph().output = x;
  b.graph().loss = b.add_node("loss", {x, b.input("y", {DType::f32, {64}})}, {}, "loss");
  constexpr std::int64_t kTensor = 16 * 64 * 4, kLoss = 2 * 256;
  for (const Mode mode : {Mode::training, Mode::inference}) {
    const Program apart = compile(b.graph(), mode, none, {.in_place = false}), shared = compile(b.graph(), mode, none);
    EXPECT_GE(apart.arena_bytes, 2 * kTensor);
    EXPECT_EQ(shared.arena_bytes, kTensor + kLoss);
    for (const Instruction& instruction : shared.instructions) {
      if (instruction.node < 1 || instruction.node > 3) continue;
      const bool forward = instruction.kind == Instruction::Kind::forward;
      EXPECT_EQ(forward ? instruction.inputs[0] : instruction.output_gradients[0],
                forward ? instruction.outputs[0] : instruction.input_gradients[0]);
    }
  }
}

TEST(Compile, NoKernelWritesOverWhatIsReadAgain) {
  OpRegistry ops = compiled_toys();
  OpDef calm = compiled_toy("calm", 1, false);
  calm.in_place = {.forward = true};
  ops.add(calm);
  OpDef sum = compiled_toy("plus", 2, false);
  sum.in_place = {.forward = true};
  ops.add(sum);
  GraphBuilder b(ops, 16);
  const ValueId x = b.apply("scale", {b.input("x", {DType::f32, {64}})});
  const ValueId y = b.apply("calm", {x});                            // x is read again
  b.graph().output = b.apply("plus", {x, b.apply("plus", {y, y})});  // y is read twice by one kernel
  const Program program = compile(b.graph(), Mode::inference, none);
  const Location at_x = program.instructions[0].outputs[0], at_y = program.instructions[1].outputs[0];
  EXPECT_NE(at_x, at_y);
  EXPECT_NE(program.instructions[2].outputs[0], at_y);
  EXPECT_NE(program.instructions[2].outputs[0], at_x);
}

// in -> norm -> act -> norm2 -> loss: both norms keep their inputs, so the output of the first one is recomputed.
TEST(Compile, WhatIsCheapIsMadeAgainWhereBackwardFirstReadsIt) {
  const OpRegistry ops = toys_that_read_inputs();
  GraphBuilder b(ops, 16);
  ValueId x = b.apply("scale", {b.input("x", {DType::f32, {64}})});
  x = b.apply("curve", {b.apply("norm", {x})});
  x = b.apply("norm", {x});
  b.graph().output = x;
  b.graph().loss = b.add_node("loss", {x, b.input("y", {DType::f32, {64}})}, {}, "loss");
  const auto is_norm = [&](std::int32_t node) {
    return b.graph().nodes[static_cast<std::size_t>(node)].op->name == "norm";
  };
  const Program kept = compile(b.graph(), Mode::training, none);
  const Program recomputed = compile(b.graph(), Mode::training, none, {.can_recompute = is_norm});
  EXPECT_EQ(count(kept, Instruction::Kind::recompute), 0);
  ASSERT_EQ(count(recomputed, Instruction::Kind::recompute), 1);  // nothing reads the output of the second norm
  EXPECT_LT(recomputed.arena_bytes, kept.arena_bytes);
  for (std::size_t i = 0; i < recomputed.instructions.size(); ++i) {
    const Instruction& again = recomputed.instructions[i];
    if (again.kind != Instruction::Kind::recompute) continue;
    const Instruction& reader = recomputed.instructions[i + 1];
    EXPECT_EQ(reader.kind, Instruction::Kind::backward);
    EXPECT_EQ(b.graph().nodes[static_cast<std::size_t>(reader.node)].op->name, "curve");
    EXPECT_EQ(reader.inputs[0], again.outputs[0]);
    EXPECT_TRUE(again.statistics.empty());
  }
  EXPECT_EQ(count(compile(b.graph(), Mode::inference, none, {.can_recompute = is_norm}), Instruction::Kind::recompute),
            0);
}

// scale -> [curve, norm, curve] -> [curve, norm, curve] -> loss: only the input of each block is kept.
TEST(Compile, BlocksAreRecomputedRightBeforeTheirBackward) {
  const OpRegistry ops = toys_that_read_inputs();
  GraphBuilder b(ops, 16);
  ValueId x = b.apply("scale", {b.input("x", {DType::f32, {64}})});
  for (const char* block : {"first", "second"}) {
    b.begin_block(block);
    x = b.apply("curve", {b.apply("norm", {b.apply("curve", {x})})});
  }
  b.begin_block("");
  b.graph().output = x;
  b.graph().loss = b.add_node("loss", {x, b.input("y", {DType::f32, {64}})}, {}, "loss");
  const Program kept = compile(b.graph(), Mode::training, none);
  const Program recomputed = compile(b.graph(), Mode::training, none, {.recompute_blocks = true});
  EXPECT_LT(recomputed.arena_bytes, kept.arena_bytes);
  EXPECT_EQ(recomputed.slots.size(), kept.slots.size());
  std::vector<std::string> order;
  for (const Instruction& instruction : recomputed.instructions) {
    const Node& node = b.graph().nodes.at(static_cast<std::size_t>(std::max(instruction.node, 0)));
    const bool forward = instruction.kind == Instruction::Kind::forward;
    order.push_back((forward ? "" : "d ") + node.name);
  }
  // The last node of a block is computed once: its backward reads its input, not its output.
  EXPECT_EQ(order,
            (std::vector<std::string>{"scale1", "curve1", "norm1",    "curve2",  "curve3",   "norm2",   "curve4",
                                      "loss",   "d loss", "curve3",   "norm2",   "d curve4", "d norm2", "d curve3",
                                      "curve1", "norm1",  "d curve2", "d norm1", "d curve1", "d scale1"}));
  for (const Instruction& instruction : recomputed.instructions) {
    for (const Location& place : instruction.statistics) EXPECT_NE(place.space, Space::none);
  }
  EXPECT_EQ(compile(b.graph(), Mode::inference, none, {.recompute_blocks = true}).instructions.size(), 8U);
}

TEST(Builder, NamesWhatIsWrong) {
  const OpRegistry ops = compiled_toys();
  GraphBuilder b(ops, 4);
  const ValueId x = b.input("x", {DType::f32, {8}});
  b.apply("act", {x}, {}, "twice");
  try {
    b.apply("act", {x}, {}, "twice");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "two layers are called 'twice'; give one another name");
    EXPECT_EQ(error.code(), ExitCode::configuration);
  }
  try {
    b.apply("sum", {x}, {}, "lonely");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "layer 'lonely': sum: expected 2 input(s), found 1");
  }
}

}  // namespace lockstep
