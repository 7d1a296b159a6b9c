// Which values of a graph are stored in a low-precision type.
#include "graph/precision.hpp"

#include <gtest/gtest.h>

#include "graph/program.hpp"
#include "lockstep/graph_builder.hpp"

namespace lockstep {

namespace {

OpDef cast_toy(const std::string& name, int inputs = 1, OpKind kind = OpKind::layer) {
  OpDef op;
  op.name = name;
  op.kind = kind;
  op.min_inputs = op.max_inputs = inputs;
  op.infer = [kind](const Attributes&, std::span<const TensorSpec> in) {
    Signature signature;
    signature.outputs = {{DType::f32, in[0].shape}};
    if (kind != OpKind::layer) signature.outputs = {{DType::f32, {in[0].shape[0]}}, {DType::f32, {in[0].shape[0]}}};
    return signature;
  };
  return op;
}

OpRegistry cast_toys() {
  OpRegistry ops;
  OpDef product = cast_toy("product");
  product.multiplies = true;
  product.infer = [](const Attributes&, std::span<const TensorSpec> in) {
    Signature signature;
    signature.outputs = {in[0]};
    signature.outputs[0].dtype = DType::f32;
    signature.parameters = {{"weight", {3, 3}, Initializer::ones()}};
    return signature;
  };
  ops.add(product);
  ops.add(cast_toy("act"));
  OpDef sum = cast_toy("sum", 2);
  sum.passes_gradient = true;
  ops.add(sum);
  OpDef view = cast_toy("view");
  view.view = true;
  ops.add(view);
  ops.add(cast_toy("loss", 1, OpKind::loss));
  ops.add(cast_toy("metric", 1, OpKind::metric));
  return ops;
}

class Precision : public testing::Test {
 protected:
  ValueId add(const std::string& op, const std::vector<ValueId>& inputs) { return builder_.apply(op, inputs); }
  /// For the values of these nodes: whether they are stored in bfloat16.
  std::vector<bool> kept_low(ValueId output, const std::vector<ValueId>& values) {
    builder_.graph().output = output;
    set_precision(builder_.graph(), DType::bf16);
    std::vector<bool> list;
    for (const ValueId id : values) list.push_back(builder_.graph().at(id).spec.dtype == DType::bf16);
    return list;
  }
  OpRegistry ops_ = cast_toys();
  GraphBuilder builder_{ops_, 2};
  ValueId x_ = builder_.input("x", {DType::f32, {3}});
};

using Bools = std::vector<bool>;

TEST_F(Precision, WhatLayersMakeForOneAnother) {
  const ValueId a = add("product", {x_}), b = add("act", {a}), c = add("product", {b});
  EXPECT_EQ(kept_low(c, {x_, a, b, c}), (Bools{false, true, true, false}));
  const Graph& graph = builder_.graph();
  EXPECT_EQ(graph.at(graph.parameters[0]).spec.dtype, DType::f32);
  EXPECT_EQ(graph.nodes[0].compute_type, DType::bf16);
  EXPECT_EQ(graph.nodes[1].compute_type, DType::f32);
}

TEST_F(Precision, NotWhatLossesAndMetricsRead) {
  const ValueId a = add("product", {x_}), b = add("act", {a}), c = add("act", {b});
  builder_.graph().loss = builder_.add_node("loss", {b}, {}, "loss");
  builder_.graph().metrics.push_back(builder_.add_node("metric", {a}, {}, "metric"));
  EXPECT_EQ(kept_low(c, {a, b, c}), (Bools{false, false, false}));
}

TEST_F(Precision, NotWhatIsSaidToBeExact) {
  const ValueId a = add("product", {x_}), b = add("act", {a}), seen = add("view", {b}), c = add("act", {seen});
  const ValueId d = add("act", {c});
  builder_.graph().values[static_cast<std::size_t>(b)].exact = true;
  EXPECT_EQ(kept_low(d, {a, b, seen, c, d}), (Bools{true, false, false, true, false}));
}

TEST_F(Precision, ViewsAreOfOneTypeWithWhatTheyShow) {
  const ValueId seen = add("view", {x_}), a = add("act", {seen}), shown = add("view", {a}), b = add("act", {shown});
  const ValueId c = add("act", {b}), out = add("view", {c});
  EXPECT_EQ(kept_low(out, {seen, a, shown, b, c, out}), (Bools{false, true, true, true, false, false}));
}

TEST_F(Precision, InputsOfASumAreOfOneTypeWithIt) {
  const ValueId a = add("act", {x_}), b = add("act", {a}), inner = add("sum", {a, b});
  const ValueId c = add("act", {inner}), d = add("act", {c}), last = add("sum", {c, d});
  EXPECT_EQ(kept_low(last, {a, b, inner, c, d, last}), (Bools{true, true, true, false, false, false}));
}

TEST_F(Precision, Float16IsKeptWhereBfloat16Is) {
  const ValueId a = add("product", {x_}), b = add("act", {a}), c = add("product", {b});
  builder_.graph().output = c;
  set_precision(builder_.graph(), DType::f16);
  const auto type = [&](ValueId id) { return builder_.graph().at(id).spec.dtype; };
  EXPECT_EQ(type(a), DType::f16);
  EXPECT_EQ(type(b), DType::f16);
  EXPECT_EQ(type(c), DType::f32);
  EXPECT_EQ(builder_.graph().nodes[0].compute_type, DType::f16);
}

TEST_F(Precision, Tf32IsForProductsOnly) {
  const ValueId a = add("product", {x_}), b = add("act", {a});
  allow_tf32(builder_.graph());
  EXPECT_TRUE(builder_.graph().nodes[0].fast_float32);
  EXPECT_FALSE(builder_.graph().nodes[1].fast_float32);
  EXPECT_EQ(builder_.graph().at(b).spec.dtype, DType::f32);
}

TEST_F(Precision, Float32ChangesNothing) {
  const ValueId a = add("product", {x_}), b = add("product", {a});
  builder_.graph().output = b;
  set_precision(builder_.graph(), DType::f32);
  EXPECT_EQ(builder_.graph().at(a).spec.dtype, DType::f32);
  EXPECT_EQ(builder_.graph().nodes[0].compute_type, DType::f32);
}

// A value with two uses: both gradients and their sum have its type.
TEST_F(Precision, SumsOfGradientsAreOfTheValuesType) {
  const ValueId a = add("product", {x_}), b = add("act", {a}), c = add("act", {a}), d = add("sum", {b, c});
  const ValueId out = add("product", {d});
  builder_.graph().loss = builder_.add_node("loss", {out}, {}, "loss");
  (void)kept_low(out, {});
  const Program program = compile(builder_.graph(), Mode::training, [](std::int32_t) { return std::size_t{0}; });
  int sums = 0;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.kind != Instruction::Kind::add) continue;
    ++sums;
    EXPECT_EQ(instruction.dtype, DType::bf16);
  }
  EXPECT_EQ(sums, 1);
}

}  // namespace

}  // namespace lockstep
