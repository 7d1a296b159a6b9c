// Shapes, refused inputs and ties of the vision ops: what their cases cannot test.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/error.hpp"
#include "ops/op_driver.hpp"
#include "ops/registry.hpp"
#include "ops/window_grid.hpp"

namespace lockstep::ops {

namespace {

using Int = std::int64_t;
using Settings = std::map<std::string, Attribute>;

class VisionOps : public testing::Test {
 protected:
  VisionOps() { add_built_in(registry_); }

  Signature infer(const std::string& name, Settings settings, Shape input, DType dtype = DType::f32) {
    const OpDef& op = registry_.at(name);
    const TensorSpec spec{dtype, std::move(input)};
    return op.infer(complete(op.attributes, Attributes(std::move(settings)), "op '" + name + "'"), std::span(&spec, 1));
  }
  std::string refusal(const std::string& name, Settings settings, Shape input, DType dtype = DType::f32) {
    try {
      (void)infer(name, std::move(settings), std::move(input), dtype);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::configuration);
      return error.what();
    }
    return "accepted";
  }
  std::string out(const std::string& name, Settings settings, Shape input) {
    return to_string(infer(name, std::move(settings), std::move(input)).outputs[0].shape);
  }

  OpRegistry registry_;
};

Settings conv(Int filters, Int kernel, Settings more = {}) {
  more["filters"] = filters;
  more["kernel"] = kernel;
  return more;
}

}  // namespace

TEST_F(VisionOps, SamePaddingDividesBySizeOfStride) {
  for (const Int kernel : {1, 2, 3, 5, 7}) {
    EXPECT_EQ(out("conv", conv(8, kernel), {2, 9, 10, 3}), "[2, 9, 10, 8]") << kernel;
    EXPECT_EQ(out("conv", conv(8, kernel, {{"stride", Int{2}}}), {2, 9, 10, 3}), "[2, 5, 5, 8]") << kernel;
  }
}

TEST_F(VisionOps, ShapesOfWellKnownLayers) {
  const Settings stem = conv(64, 7, {{"stride", Int{2}}});
  EXPECT_EQ(out("conv", stem, {1, 224, 224, 3}), "[1, 112, 112, 64]");
  EXPECT_EQ(out("max_pool", {{"kernel", Int{3}}, {"stride", Int{2}}, {"padding", Int{1}}}, {1, 112, 112, 64}),
            "[1, 56, 56, 64]");
  EXPECT_EQ(out("conv", conv(16, 5, {{"padding", std::string("valid")}}), {1, 14, 14, 6}), "[1, 10, 10, 16]");
  EXPECT_EQ(out("global_pool", {}, {4, 7, 7, 512}), "[4, 512]");
}

TEST_F(VisionOps, ConvSaysWhatItExpected) {
  EXPECT_EQ(refusal("conv", conv(8, 3, {{"groups", Int{3}}}), {2, 8, 8, 16}),
            "conv: expected input channels divisible by groups 3, found 16");
  EXPECT_EQ(refusal("conv", conv(8, 3, {{"groups", Int{3}}}), {2, 8, 8, 15}),
            "conv: expected filters divisible by groups 3, found 8");
  EXPECT_EQ(refusal("conv", conv(8, 3), {2, 64}),
            "conv: expected images [batch, height, width, channels] of f32, found [2, 64] of f32");
  EXPECT_EQ(refusal("conv", conv(8, 3), {2, 8, 8, 3}, DType::i32),
            "conv: expected images [batch, height, width, channels] of f32, found [2, 8, 8, 3] of i32");
  EXPECT_EQ(refusal("conv", conv(8, 5, {{"padding", std::string("valid")}}), {2, 4, 8, 3}),
            "conv: expected an input at least as high as the kernel, which covers 5 pixels, found 4 with 0 of padding; "
            "take a smaller kernel or more padding");
  EXPECT_EQ(refusal("conv", conv(8, 3, {{"stride", std::vector<Int>{1, 1, 1}}}), {2, 8, 8, 3}),
            "conv: stride: expected one integer or [height, width], found 3 integers");
  EXPECT_EQ(refusal("conv", conv(8, 3, {{"padding", std::string("half")}}), {2, 8, 8, 3}),
            "op 'conv': padding: expected one of same, valid, found 'half'");
}

TEST_F(VisionOps, PoolsSayWhatTheyExpected) {
  EXPECT_EQ(
      refusal("max_pool", {{"kernel", Int{3}}}, {2, 8, 2, 3}),
      "max_pool: expected an input at least as wide as the kernel, which covers 3 pixels, found 2 with 0 of padding; "
      "take a smaller kernel or more padding");
  EXPECT_EQ(refusal("avg_pool", {{"kernel", Int{2}}, {"padding", Int{2}}}, {2, 8, 8, 3}),
            "avg_pool: expected a padding smaller than the kernel 2, found 2");
  EXPECT_EQ(refusal("max_pool", {{"kernel", Int{17}}}, {2, 32, 32, 3}),
            "max_pool: expected a kernel of at most 256 pixels, found 289");
  EXPECT_EQ(refusal("global_pool", {}, {2, 64}),
            "global_pool: expected images [batch, height, width, channels] of f32, found [2, 64] of f32");
  EXPECT_EQ(refusal("global_pool", {}, {1, Int{1} << 16, Int{1} << 15, 1}),
            "global_pool: expected images of fewer than 2^31 pixels, found 2147483648");
  EXPECT_EQ(refusal("batch_norm", {}, {7}),
            "batch_norm: expected an input [batch, ..., channels] of f32, found [7] of f32");
}

/// In images with more than 2^32 elements: used by a GPU's kernels to address elements.
TEST_F(VisionOps, PlacesBeyond32Bits) {
  const Int height = 30'000, width = 50'000, channels = 3, sample = 2;
  const Int element = ((sample * height + 29'999) * width + 49'998) * channels + 1;
  ASSERT_GT(element, Int{1} << 33);
  const ImagePosition at(element, height, width, channels);
  EXPECT_EQ((std::vector{at.sample, at.row, at.column, at.channel}), (std::vector<Int>{2, 29'999, 49'998, 1}));

  const WindowAxis pairs{.kernel = 2, .stride = 2};
  const WindowShape image{.batch = 3,
                          .height = height,
                          .width = width,
                          .channels = channels,
                          .out_height = height / 2,
                          .out_width = width / 2};
  std::vector<Int> outputs;
  CoveringWindows({pairs, pairs}, image).for_windows_over(element, [&](const CoveringWindow& over) {
    outputs.push_back(over.output);
  });
  EXPECT_EQ(outputs, (std::vector<Int>{((sample * (height / 2) + 14'999) * (width / 2) + 24'999) * channels + 1}));
}

TEST_F(VisionOps, TiesOfAMaximumGoToTheFirstPixel) {
  for (const char* name : {"max_pool", "global_pool"}) {
    OpCase equal{.name = "ties", .inputs = {{DType::f32, {1, 2, 2, 1}}}};
    equal.fill = [](int, Tensor& tensor) { std::ranges::fill(tensor.as<float>(), 1.0F); };
    if (name == std::string("max_pool")) equal.attributes.set("kernel", Int{2});
    if (name == std::string("global_pool")) equal.attributes.set("kind", std::string("max"));
    const Problem problem = make_problem(registry_.at(name), equal);
    const auto kernel = problem.make_kernel();
    KernelRun run(problem);
    run.forward(*kernel);
    run.backward(*kernel);
    const double dy = to_doubles(problem.output_gradients[0]).values[0];
    const auto gradient = to_doubles(run.input_gradients()[0], problem.input_specs[0]).values;
    EXPECT_EQ(gradient, (std::vector<double>{dy, 0, 0, 0})) << name;
  }
}

/// A kernel packs the weight once per version of the parameters, and again when they change.
TEST_F(VisionOps, ConvSeesNewParameters) {
  const OpCase the_case{
      .name = "packing", .attributes = Attributes(conv(16, 3)), .inputs = {{DType::f32, {2, 6, 6, 16}}}};
  Problem problem = make_problem(registry_.at("conv"), the_case);
  const auto kernel = problem.make_kernel();
  KernelRun before(problem);
  before.forward(*kernel);
  before.backward(*kernel);
  for (float& value : problem.parameters[0].as<float>()) value *= 2;
  std::ranges::fill(problem.parameters[1].as<float>(), 0.0F);
  ++problem.step.parameters_version;
  KernelRun after(problem);
  after.forward(*kernel);
  after.backward(*kernel);
  const auto fresh = problem.make_kernel();
  KernelRun expected(problem);
  expected.forward(*fresh);
  expected.backward(*fresh);
  EXPECT_TRUE(after.outputs() == expected.outputs());
  EXPECT_TRUE(after.input_gradients() == expected.input_gradients());
  EXPECT_FALSE(after.outputs() == before.outputs());
}

}  // namespace lockstep::ops
