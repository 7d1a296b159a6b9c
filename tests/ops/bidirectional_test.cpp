// lstm and gru of two directions as a graph. tests/peer holds what they compute against PyTorch.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lockstep/error.hpp"
#include "lockstep/graph_builder.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

namespace {

class Bidirectional : public testing::Test {
 protected:
  Bidirectional() { add_built_in(registry_); }

  ValueId apply(const std::string& op, const std::vector<ValueId>& inputs, std::int64_t features, bool both,
                const std::string& name = "") {
    return builder_.apply(op, inputs, Attributes({{"features", features}, {"bidirectional", both}}), name);
  }
  /// The message for inputs of a layer 'both'.
  std::string refusal(const std::vector<ValueId>& inputs, bool both) {
    try {
      (void)apply("lstm", inputs, 4, both, "both");
    } catch (const Error& error) {
      return error.what();
    }
    return "it took them";
  }

  OpRegistry registry_;
  GraphBuilder builder_{registry_, 2};
  ValueId x_ = builder_.input("x", {DType::f32, {5, 6}}), lengths_ = builder_.input("length", {DType::i32, {}});
};

}  // namespace

TEST_F(Bidirectional, IsTwoLayersAndLaterOnesKeepTheirNames) {
  const ValueId both = apply("gru", {x_, lengths_}, 4, true);
  EXPECT_EQ(builder_.spec(both).shape, (Shape{2, 5, 8}));
  (void)apply("gru", {both}, 3, false);
  (void)builder_.apply("reverse", {both});
  const Graph& graph = builder_.graph();
  std::vector<std::string> nodes, parameters;
  for (const Node& node : graph.nodes) nodes.push_back(node.op->name + " " + node.name);
  EXPECT_EQ(nodes, (std::vector<std::string>{"gru gru1.forwards", "reverse gru1.reversed", "gru gru1.backwards",
                                             "reverse gru1.restored", "concat gru1", "gru gru2", "reverse reverse1"}));
  for (const std::size_t reverse : {1U, 3U}) EXPECT_EQ(graph.nodes[reverse].inputs.at(1), lengths_);
  for (const ValueId id : graph.parameters) parameters.push_back(graph.at(id).name);
  ASSERT_EQ(parameters.size(), 12U);
  EXPECT_EQ(parameters[0], "gru1.forwards.weight_ih");
  EXPECT_EQ(parameters[4], "gru1.backwards.weight_ih");
  EXPECT_EQ(parameters[8], "gru2.weight_ih");
}

TEST_F(Bidirectional, SaysWhichInputsItTakes) {
  EXPECT_EQ(refusal({x_, lengths_, lengths_}, false), "layer 'both': lstm: expected at most 2 input(s), found 3");
  EXPECT_EQ(refusal({x_, x_}, true),
            "layer 'both.reversed': reverse: expected an input [batch, time, ...] and lengths [batch] of i32, found "
            "[2, 5, 6] and [2, 5, 6] of f32");
}

}  // namespace lockstep::ops
