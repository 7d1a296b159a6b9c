// Which tensors have the order of a flattened image.
#include "graph/flattened.hpp"

#include <gtest/gtest.h>

#include "lockstep/graph_builder.hpp"

namespace lockstep {

namespace {

/// Samples of an image are 2 x 4 x 3.
const Shape kImage{5, 2, 4, 3}, kRow{5, 24};

OpDef flattened_toy(const std::string& name, const Shape& out, const Shape& weight, OpKind kind = OpKind::layer) {
  OpDef op;
  op.name = name;
  op.kind = kind;
  op.min_inputs = 1;
  op.max_inputs = -1;
  op.infer = [=](const Attributes&, std::span<const TensorSpec> in) {
    Signature signature;
    signature.outputs = {{DType::f32, out.empty() ? in[0].shape : out}};
    if (kind == OpKind::loss) signature.outputs = {{DType::f32, {5}}, {DType::f32, {5}}};
    if (!weight.empty()) signature.parameters = {{"weight", weight, Initializer::ones()}};
    return signature;
  };
  return op;
}

class Flattened : public testing::Test {
 protected:
  Flattened() {
    ops_.add(flattened_toy("flatten", kRow, {}));
    ops_.add(flattened_toy("norm", {}, {24}));
    ops_.add(flattened_toy("add", {}, {}));
    ops_.add(flattened_toy("linear", {5, 24}, {24, 24}));
    ops_.add(flattened_toy("image", kImage, {}));
    ops_.add(flattened_toy("narrow", {5, 7}, {}));
    ops_.add(flattened_toy("half", {5, 12}, {}));
    ops_.add(flattened_toy("widen", kRow, {}));
    ops_.add(flattened_toy("concat", {5, 48}, {}));
    ops_.add(flattened_toy("loss", {}, {}, OpKind::loss));
  }
  ValueId layer(const std::string& op, const std::vector<ValueId>& inputs, const std::string& name) {
    return builder_.apply(op, inputs, {}, name);
  }
  std::vector<std::string> names() {
    std::vector<std::string> names;
    for (const auto& [name, image] : flattened_tensors(builder_.graph()).by_name) {
      EXPECT_EQ(image.columns, (FlattenedImage{2, 4, 3})) << name;
      EXPECT_EQ(image.rows, FlattenedImage()) << name;
      names.push_back(name);
    }
    return names;
  }
  std::string unclear() { return flattened_tensors(builder_.graph()).unclear; }
  using Names = std::vector<std::string>;

  OpRegistry ops_;
  GraphBuilder builder_{ops_, 5};
  ValueId image_ = builder_.input("image", {DType::f32, {2, 4, 3}});
};

}  // namespace

TEST_F(Flattened, UpToTheNextLinearLayer) {
  const ValueId row = layer("norm", {layer("flatten", {image_}, "flat")}, "norm");
  const ValueId middle = layer("linear", {row}, "middle");
  layer("linear", {layer("norm", {middle}, "after")}, "head");
  EXPECT_EQ(names(), (Names{"middle.weight", "norm.weight"}));
  EXPECT_EQ(unclear(), "");
}

TEST_F(Flattened, ThroughASumOfTwo) {
  const ValueId left = layer("flatten", {image_}, "left"), right = layer("flatten", {image_}, "right");
  layer("linear", {layer("add", {left, right}, "sum")}, "head");
  EXPECT_EQ(names(), Names{"head.weight"});
}

TEST_F(Flattened, BackToAnImage) {
  const ValueId again = layer("image", {layer("flatten", {image_}, "flat")}, "again");
  layer("norm", {again}, "norm");
  EXPECT_EQ(names(), Names{});
  EXPECT_EQ(unclear(), "");
}

TEST_F(Flattened, MadeIntoAnImage) {
  const ValueId other = layer("linear", {layer("flatten", {image_}, "flat")}, "code");
  const ValueId row = layer("norm", {layer("linear", {layer("narrow", {other}, "narrow")}, "expand")}, "norm");
  layer("image", {row}, "made");
  layer("linear", {row}, "beside");
  const auto found = flattened_tensors(builder_.graph());
  const FlattenedImage image{2, 4, 3}, none;
  EXPECT_EQ(found.by_name, (std::map<std::string, FlattenedTensor>{{"code.weight", {image, none}},
                                                                   {"expand.weight", {none, image}},
                                                                   {"norm.weight", {image, none}},
                                                                   {"beside.weight", {image, none}}}));
  EXPECT_EQ(found.unclear + found.unmade, "");
}

TEST_F(Flattened, MadeOfSomethingElse) {
  const ValueId both = layer("half", {layer("flatten", {image_}, "flat")}, "half");
  layer("image", {layer("widen", {both}, "widen")}, "made");
  EXPECT_EQ(flattened_tensors(builder_.graph()).unmade, "image 'made'");
}

TEST_F(Flattened, ThatALossReads) {
  Graph& graph = builder_.graph();
  const ValueId flat = layer("flatten", {image_}, "flat");
  graph.loss = builder_.add_node("loss", {flat}, {}, "loss");
  EXPECT_EQ(unclear(), "");
}

TEST_F(Flattened, WithSomethingElse) {
  const ValueId flat = layer("flatten", {image_}, "flat");
  const ValueId other = layer("linear", {flat}, "other");
  layer("concat", {flat, other}, "both");
  EXPECT_EQ(unclear(), "concat 'both'");
}

TEST_F(Flattened, PlacesOfChannelsFirst) {
  const FlattenedImage image{2, 1, 3};
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < image.elements(); ++i) places.push_back(image.place_channels_first(i));
  EXPECT_EQ(places, (std::vector<std::int64_t>{0, 2, 4, 1, 3, 5}));
}

TEST(FlattenedOfOneChannel, IsTheSameEitherWay) {
  OpRegistry ops;
  ops.add(flattened_toy("flatten", {5, 8}, {}));
  ops.add(flattened_toy("linear", {5, 8}, {8, 8}));
  GraphBuilder builder(ops, 5);
  const ValueId flat = builder.apply("flatten", {builder.input("image", {DType::f32, {2, 4, 1}})}, {}, "flat");
  builder.apply("linear", {flat}, {}, "head");
  EXPECT_TRUE(flattened_tensors(builder.graph()).by_name.empty());
}

}  // namespace lockstep
