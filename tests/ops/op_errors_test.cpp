// The messages for shapes, targets or ids that do not fit. The builder puts the layer's name and place before them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lockstep/error.hpp"
#include "lockstep/op.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

namespace {

class OpErrors : public testing::Test {
 protected:
  OpErrors() { add_built_in(registry_); }

  /// The message of the op's shape rule; empty if it accepts the inputs.
  [[nodiscard]] std::string refusal(const std::string& op, const Attributes& attributes,
                                    const std::vector<TensorSpec>& inputs) const {
    const OpDef& def = registry_.at(op);
    try {
      (void)def.infer(complete(def.attributes, attributes, "op '" + op + "'"), inputs);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::configuration);
      return error.what();
    }
    return "";
  }

  /// The message of binary_cross_entropy for one target.
  [[nodiscard]] std::string share_refusal(float target) const {
    const TensorSpec one{DType::f32, {1, 1}};
    return data_refusal("binary_cross_entropy", {}, {one, one}, 0, target);
  }

  /// The message of forward for one i32 input (or target) that holds `bad`, or floats that are `value`.
  [[nodiscard]] std::string data_refusal(const std::string& op, const Attributes& given,
                                         const std::vector<TensorSpec>& inputs, std::int32_t bad,
                                         float value = 0) const {
    const OpDef& def = registry_.at(op);
    const Attributes attributes = complete(def.attributes, given, "op '" + op + "'");
    const Signature signature = def.infer(attributes, inputs);
    KernelRequest request{op, &attributes, Mode::inference, inputs, {}, {}, signature.outputs, {}};
    std::vector<Tensor> tensors;
    std::vector<const void*> in, parameters;
    std::vector<void*> out;
    tensors.reserve(8);
    for (const auto& spec : inputs) {
      Tensor& tensor = tensors.emplace_back(spec);
      if (spec.dtype == DType::i32) tensor.as<std::int32_t>()[0] = bad;
      if (spec.dtype == DType::f32) tensor.as<float>()[0] = value;
      in.push_back(tensor.bytes());
    }
    for (const auto& parameter : signature.parameters) {
      request.parameters.push_back({DType::f32, parameter.shape});
      parameters.push_back(tensors.emplace_back(request.parameters.back()).bytes());
    }
    for (const auto& spec : signature.outputs) out.push_back(tensors.emplace_back(spec).bytes());
    const auto kernel = def.kernels.at(DeviceKind::cpu)(request);
    Tensor workspace({DType::u8, {static_cast<std::int64_t>(kernel->workspace_bytes())}});
    try {
      kernel->forward({in, parameters, {}, {}, out, {}, workspace.bytes(), nullptr});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      return error.what();
    }
    return "";
  }

  OpRegistry registry_;
};

TensorSpec f32(Shape shape) {
  return {DType::f32, std::move(shape)};
}
TensorSpec i32(Shape shape) {
  return {DType::i32, std::move(shape)};
}

}  // namespace

TEST_F(OpErrors, LengthsMustFit) {
  const TensorSpec x = f32({2, 5, 6}), lengths{DType::i32, {2}}, three{DType::i32, {3}};
  const Attributes first({{"axis", std::int64_t{1}}});
  for (const char* op : {"last", "reverse", "mask", "mean", "max", "global_pool"}) {
    const Attributes attributes = std::string(op).starts_with("m") && op != std::string("mask") ? first : Attributes();
    EXPECT_EQ(refusal(op, attributes, {x, lengths}), "") << op;
    EXPECT_EQ(refusal(op, attributes, {x, three}),
              std::string(op) +
                  ": expected an input [batch, time, ...] and lengths [batch] of i32, found [2, 5, 6] and "
                  "[3] of i32");
    EXPECT_EQ(refusal(op, attributes, {x, f32({2})}),
              std::string(op) +
                  ": expected an input [batch, time, ...] and lengths [batch] of i32, found [2, 5, 6] and "
                  "[2] of f32");
  }
  EXPECT_EQ(refusal("mean", {}, {x, lengths}),
            "mean: expected dimension 1 to be the one that is joined, since lengths are of it, found dimension 2 of "
            "[2, 5, 6]; set axis: 1");
  EXPECT_EQ(refusal("global_pool", {}, {f32({2, 5, 6, 3}), lengths}),
            "global_pool: expected lengths of [batch, time, width], found them of [2, 5, 6, 3]");
  EXPECT_EQ(refusal("last", {}, {f32({2})}), "last: expected an input [batch, time, ...] with positions, found [2]");
  EXPECT_EQ(
      refusal("attention", Attributes({{"heads", std::int64_t{2}}}), {x, three}),
      "attention: expected an input [batch, time, ...] and lengths [batch] of i32, found [2, 5, 6] and [3] of i32");
}

TEST_F(OpErrors, MoreLabelsThanAreSorted) {
  EXPECT_EQ(refusal("auc", {}, {f32({2, 28, 28, 1}), f32({2, 28, 28, 1})}),
            "auc: expected at most 200 labels a sample, found 784; of masks use iou");
}

TEST_F(OpErrors, LengthsOfOneDirection) {
  EXPECT_EQ(refusal("lstm", Attributes({{"features", std::int64_t{4}}}), {f32({2, 5, 6}), i32({2})}),
            "lstm: expected one input, since a step sees only those before it and needs no lengths, found 2; give only "
            "the first, or set bidirectional: true");
}

TEST_F(OpErrors, ShapesThatDiffer) {
  EXPECT_EQ(refusal("add", {}, {f32({16, 32, 32, 64}), f32({16, 32, 32, 32})}),
            "add: expected inputs of one shape, found [16, 32, 32, 64] and [16, 32, 32, 32]");
  EXPECT_EQ(refusal("mul", {}, {f32({2, 3}), f32({2, 3}), f32({2, 4})}),
            "mul: expected inputs of one shape, found [2, 3] and [2, 4]");
  EXPECT_EQ(refusal("mul", {}, {f32({2, 8}), f32({2, 5, 5, 8})}),
            "mul: expected factors for the channels as second input, found [2, 8] and [2, 5, 5, 8]; name them behind "
            "what they are for");
  EXPECT_EQ(refusal("mul", {}, {f32({2, 5, 5, 8}), f32({2, 4})}),
            "mul: expected inputs of one shape, found [2, 5, 5, 8] and [2, 4]");
  const Attributes transposed({{"transpose", true}});
  EXPECT_EQ(refusal("matmul", {}, {f32({2, 3, 4}), f32({2, 5, 6})}),
            "matmul: expected inputs [batch, ..., m, k] and [batch, ..., k, n], found [2, 3, 4] and [2, 5, 6]");
  EXPECT_EQ(refusal("matmul", {}, {f32({2, 3, 4}), f32({2, 5, 4})}),
            "matmul: expected inputs [batch, ..., m, k] and [batch, ..., k, n], found [2, 3, 4] and [2, 5, 4]; these "
            "fit with transpose: true");
  EXPECT_EQ(refusal("matmul", transposed, {f32({2, 3, 4}), f32({2, 4, 5})}),
            "matmul: expected inputs [batch, ..., m, k] and [batch, ..., n, k], found [2, 3, 4] and [2, 4, 5]; these "
            "fit with transpose: false");
  EXPECT_EQ(refusal("matmul", {}, {f32({2, 6, 3, 4}), f32({2, 5, 4, 3})}),
            "matmul: expected inputs [batch, ..., m, k] and [batch, ..., k, n], found [2, 6, 3, 4] and [2, 5, 4, 3]");
  EXPECT_EQ(refusal("matmul", {}, {f32({2, 4}), f32({2, 4})}),
            "matmul: expected inputs [batch, ..., m, k] and [batch, ..., k, n], found [2, 4] and [2, 4]");
  EXPECT_EQ(refusal("matmul", {}, {f32({2, 3, 4}), i32({2, 4, 3})}),
            "matmul: expected inputs of f32, found [2, 3, 4] of f32 and [2, 4, 3] of i32");
  EXPECT_EQ(
      refusal("concat", {}, {f32({2, 3, 4}), f32({2, 5, 4})}),
      "concat: expected inputs of f32 that differ in dimension 2 only, found [2, 3, 4] of f32 and [2, 5, 4] of f32");
  EXPECT_EQ(refusal("group_norm", Attributes({{"groups", std::int64_t{4}}}), {f32({2, 5, 5, 6})}),
            "group_norm: expected groups that divide the 6 channels, found 4");
  EXPECT_EQ(refusal("group_norm", Attributes({{"groups", std::int64_t{6}}}), {f32({2, 6})}),
            "group_norm: expected groups of at least two elements, found one in each of the 6 groups of [2, 6]");
  EXPECT_EQ(refusal("mean_squared_error", {}, {f32({2, 3}), f32({2, 4})}),
            "mean_squared_error: expected a prediction and a target of one shape and of f32, found [2, 3] of f32 and "
            "[2, 4] of f32");
  EXPECT_EQ(refusal("binary_cross_entropy", {}, {f32({2, 3}), i32({2})}),
            "binary_cross_entropy: expected a prediction of f32 and a target of its shape, of f32 or i32, found [2, 3] "
            "of f32 and [2] of i32");
}

TEST_F(OpErrors, Padding) {
  const std::vector<std::int64_t> three{1, 2, 3};
  EXPECT_EQ(refusal("pad", Attributes({{"sides", three}}), {f32({2, 5, 5, 3})}),
            "pad: sides: expected one integer, [rows, columns] or [top, bottom, left, right], found 3 integers");
  EXPECT_EQ(refusal("pad", Attributes({{"sides", std::int64_t{1}}}), {f32({2, 5})}),
            "pad: expected images [batch, height, width, channels] of f32, found [2, 5] of f32");
  EXPECT_EQ(refusal("pad", Attributes({{"sides", std::vector<std::int64_t>{1, 5}}, {"mode", std::string("reflect")}}),
                    {f32({2, 4, 5, 3})}),
            "pad: expected fewer columns to mirror than the image has, 5, found 5; take mode zero, or less");
}

TEST_F(OpErrors, TransposedConvolutions) {
  const auto of = [&](std::map<std::string, Attribute> more, Shape image = {2, 4, 4, 3}) {
    more["filters"] = std::int64_t{4};
    if (!more.contains("kernel")) more["kernel"] = std::int64_t{3};
    return refusal("conv_transpose", Attributes(std::move(more)), {f32(std::move(image))});
  };
  EXPECT_EQ(of({{"stride", std::int64_t{4}}}),
            "conv_transpose: padding same: expected a kernel at least as high as the stride 4, found 3");
  EXPECT_EQ(
      of({{"stride", std::int64_t{2}}, {"output_padding", std::int64_t{1}}}),
      "conv_transpose: output_padding: padding same gives the input's size times the stride; leave it out, or give "
      "the padding in pixels");
  EXPECT_EQ(of({{"padding", std::int64_t{1}}, {"output_padding", std::int64_t{2}}}),
            "conv_transpose: output_padding: expected less than the stride 1 or the dilation 1, found 2");
  EXPECT_EQ(of({{"padding", std::int64_t{0}}, {"output_padding", std::vector<std::int64_t>{0, 0, 0}}}),
            "conv_transpose: output_padding: expected one integer or [height, width], found 3 integers");
  EXPECT_EQ(of({{"padding", std::int64_t{4}}}),
            "conv_transpose: expected an output at least one pixel high, found -2 of 4 pixels; take less padding");
  EXPECT_EQ(of({{"groups", std::int64_t{2}}}),
            "conv_transpose: expected input channels divisible by groups 2, found 3");
  EXPECT_EQ(of({{"groups", std::int64_t{3}}}), "conv_transpose: expected filters divisible by groups 3, found 4");
}

TEST_F(OpErrors, ReportsOfSums) {
  // Four targets around 1e4, one of them a residual of 2: 1 - 4 / 20.
  const auto r2 = [&](const std::vector<float>& targets, float residual) {
    const OpDef& def = registry_.at("r2");
    const std::int64_t n = static_cast<std::int64_t>(targets.size());
    const std::vector<TensorSpec> inputs = {f32({n, 1}), f32({n})};
    const Attributes none;
    const Signature signature = def.infer(none, inputs);
    Tensor x(inputs[0]), t(inputs[1]), values(signature.outputs[0]), count(signature.outputs[1]);
    std::copy(targets.begin(), targets.end(), x.as<float>().begin());
    std::copy(targets.begin(), targets.end(), t.as<float>().begin());
    x.as<float>()[0] += residual;
    const std::vector<const void*> in = {x.bytes(), t.bytes()};
    const std::vector<void*> out = {values.bytes(), count.bytes()};
    const auto kernel =
        def.kernels.at(DeviceKind::cpu)({"r2", &none, Mode::inference, inputs, {}, {}, signature.outputs, {}});
    kernel->forward({in, {}, {}, {}, out, {}, nullptr, nullptr});
    std::vector<double> sums(7);
    for (std::size_t i = 0; i < values.as<float>().size(); ++i) {
      sums[i % 6] += static_cast<double>(values.as<float>()[i]);
    }
    for (const float counted : count.as<float>()) sums[6] += static_cast<double>(counted);
    return def.report(sums);
  };
  EXPECT_NEAR(r2({9997, 9999, 10001, 10003}, 2), 0.8, 1e-5);
  EXPECT_EQ(r2({5, 5, 5}, 0), 1);
  EXPECT_EQ(r2({5, 5, 5}, 1), 0);
  EXPECT_EQ(registry_.at("r2").report(std::vector<double>(7)), 0);
  // Of three classes: 3 of 4 predictions right, 1 of 1, and none of one that nobody predicts or is.
  const std::vector<double> counts = {3, 1, 0, 4, 1, 0, 3, 2, 0, 5};
  EXPECT_EQ(registry_.at("macro_precision").report(counts), (0.75 + 1) / 2);
  EXPECT_EQ(registry_.at("macro_recall").report(counts), (1 + 0.5) / 2);
  EXPECT_EQ(registry_.at("macro_f1").report(counts), (3 / 3.5 + 1 / 1.5) / 2);
  EXPECT_EQ(registry_.at("mean_iou").report(counts), (0.75 + 0.5) / 2);
  EXPECT_EQ(registry_.at("mean_iou").report(std::vector<double>(10)), 0);
}

TEST_F(OpErrors, KlDivergenceWantsProbabilities) {
  EXPECT_EQ(
      refusal("kl_divergence", {}, {f32({5, 3}), i32({5})}),
      "kl_divergence: for a prediction [5, 3] expected a target of its shape, of probabilities in f32, found [5] of "
      "i32; for class numbers use cross_entropy");
}

TEST_F(OpErrors, ContrastiveWantsTwoVectorsAndALabel) {
  EXPECT_EQ(
      refusal("contrastive", {}, {f32({4, 7}), i32({4})}),
      "contrastive: expected a prediction [batch, 2 x size] of f32, two vectors a sample, found [4, 7] of f32; join "
      "the towers with `concat`");
  EXPECT_EQ(refusal("contrastive", {}, {f32({4, 6}), f32({4, 6})}),
            "contrastive: expected a target [4] of i32, a label a sample, found [4, 6] of f32");
}

TEST_F(OpErrors, TripletWantsThreeVectors) {
  EXPECT_EQ(
      refusal("triplet", {}, {f32({4, 7}), i32({4})}),
      "triplet: expected a prediction [batch, 3 x size] of f32, anchor, positive and negative, found [4, 7] of f32; "
      "join the three with `concat`");
}

TEST_F(OpErrors, Axes) {
  EXPECT_EQ(refusal("mean", Attributes({{"axis", std::int64_t{0}}}), {f32({2, 3})}),
            "mean: expected an axis from 1 to 1, or from the end -1 to -1, found 0");
  EXPECT_EQ(refusal("max", {}, {f32({2, 3, 0})}),
            "max: expected 1 to 2^31 - 1 elements of dimension 2 of [2, 3, 0], found 0");
  EXPECT_EQ(refusal("concat", Attributes({{"axis", std::int64_t{0}}}), {f32({2, 3}), f32({2, 3})}),
            "concat: expected an axis from 1 to 1, or from the end -1 to -1, found 0");
  EXPECT_EQ(refusal("slice", Attributes({{"axis", std::int64_t{0}}}), {f32({2, 3})}),
            "slice: expected an axis from 1 to 1, or from the end -1 to -1, found 0");
  EXPECT_EQ(refusal("slice", Attributes({{"begin", std::int64_t{2}}, {"end", std::int64_t{-1}}}), {f32({2, 3})}),
            "slice: expected a part of the 3 elements of dimension 1 of [2, 3], found 2 to 2");
  EXPECT_EQ(refusal("upsample", {}, {f32({2, 3})}),
            "upsample: expected images [batch, height, width, channels], found [2, 3]");
  EXPECT_EQ(refusal("transpose", Attributes({{"order", std::vector<std::int64_t>{1, 1}}}), {f32({2, 3, 4})}),
            "transpose: expected an order of the dimensions 1 to 2 of an input [2, 3, 4] of f32, found [1, 1] and f32");
  EXPECT_EQ(
      refusal("reshape", Attributes({{"shape", std::vector<std::int64_t>{4, -1}}}), {f32({2, 5, 3})}),
      "reshape: expected a shape with as many elements as a sample of [2, 5, 3] (the batch dimension left out, at "
      "most one -1), found [4, -1]");
}

TEST_F(OpErrors, Targets) {
  EXPECT_EQ(
      refusal("cross_entropy", {}, {f32({8, 10}), i32({8, 1})}),
      "cross_entropy: for a prediction [8, 10] expected a target [8] of i32 or [8, 10] of f32, found [8, 1] of i32");
  EXPECT_EQ(refusal("accuracy", {}, {i32({8, 10}), i32({8})}),
            "accuracy: expected a prediction [batch, ..., classes] of f32, found [8, 10] of i32");
}

TEST_F(OpErrors, Text) {
  const Attributes three({{"heads", std::int64_t{3}}});
  EXPECT_EQ(refusal("attention", three, {f32({2, 5, 24})}),
            "attention: expected a width that is a multiple of 3 heads, found [2, 5, 24] of f32");
  EXPECT_EQ(refusal("attention", three, {f32({2, 5, 6}), f32({2, 5, 6})}),
            "attention: expected one input (q, k, v side by side) or three (q, k, v), and behind them lengths [batch] "
            "of i32, "
            "if any, found [2, 5, 6] of f32, [2, 5, 6] "
            "of f32");
  const Attributes grouped({{"heads", std::int64_t{6}}, {"kv_heads", std::int64_t{4}}});
  EXPECT_EQ(refusal("attention", grouped, {f32({2, 5, 24})}),
            "attention: expected kv_heads that divide the 6 heads, found 4");
  const Attributes pairs({{"heads", std::int64_t{4}}, {"kv_heads", std::int64_t{2}}});
  EXPECT_EQ(refusal("attention", pairs, {f32({2, 5, 12})}),
            "attention: expected an input [batch, time, width] of 4 heads and twice 2 kv_heads, found [2, 5, 12] of "
            "f32");
  EXPECT_EQ(refusal("attention", pairs, {f32({2, 5, 12}), f32({2, 5, 12}), f32({2, 5, 12})}),
            "attention: expected k and v of 2 heads of 3, found [2, 5, 12] of f32, [2, 5, 12] of f32, [2, 5, 12] of "
            "f32");
  EXPECT_EQ(refusal("rope", three, {f32({2, 15})}),
            "rope: expected an input [batch, time, width] of f32, found [2, 15] of f32");
  EXPECT_EQ(refusal("rope", three, {f32({2, 5, 15})}),
            "rope: expected a width of 3 heads of an even size, at most 512, found [2, 5, 15] of f32");
  const Attributes units({{"features", std::int64_t{4}}});
  EXPECT_EQ(refusal("lstm", units, {f32({2, 15})}),
            "lstm: expected an input [batch, time, width] of f32, found [2, 15] of f32");
  EXPECT_EQ(refusal("gru", units, {i32({2, 15})}),
            "gru: expected an input [batch, time, width] of f32, found [2, 15] of i32");
  EXPECT_EQ(refusal("position_embedding", Attributes({{"length", std::int64_t{4}}}), {f32({2, 5, 6})}),
            "position_embedding: expected at most 4 positions, found 5; raise `length`");
  EXPECT_EQ(refusal("position_embedding", Attributes({{"length", std::int64_t{2}}, {"same", true}}), {f32({2, 5, 6})}),
            "");
  EXPECT_EQ(refusal("class_token", {}, {f32({2, 6})}),
            "class_token: expected an input [batch, time, width] of f32, found [2, 6] of f32");
  EXPECT_EQ(
      refusal("embedding", Attributes({{"vocabulary", std::int64_t{4}}, {"width", std::int64_t{2}}}), {f32({2, 5})}),
      "embedding: expected an input [batch, ...] of i32, found [2, 5] of f32");
  EXPECT_EQ(refusal("dropout", Attributes({{"rate", 1.0}}), {f32({2, 5})}), "op 'dropout': rate: 1 is out of range");
  EXPECT_EQ(refusal("scale", Attributes({{"factor", 1e39}}), {f32({2, 5})}),
            "scale: expected a factor that fp32 can hold, found 1e+39");
  EXPECT_EQ(refusal("scale", Attributes({{"factor", 1e-50}}), {f32({2, 5})}),
            "scale: expected a factor that fp32 can hold, found 1e-50");
  EXPECT_EQ(refusal("scale", Attributes({{"factor", 2.0}}), {i32({2, 5})}),
            "scale: expected an input of f32, found i32");
  EXPECT_EQ(refusal("relu", {}, {i32({2, 5})}), "relu: expected an input of f32, found i32");
}

TEST_F(OpErrors, DataOutOfRange) {
  EXPECT_EQ(
      data_refusal("cross_entropy", {}, {f32({1, 10}), i32({1})}, 10),
      "a label is 10, but the model predicts classes 0 to 9; the model's last layer needs as many features as the "
      "data set has classes");
  EXPECT_EQ(
      data_refusal("accuracy", {}, {f32({1, 10}), i32({1})}, -1),
      "a label is -1, but the model predicts classes 0 to 9; the model's last layer needs as many features as the "
      "data set has classes");
  for (const char* op : {"binary_cross_entropy", "f1"}) {
    EXPECT_EQ(data_refusal(op, {}, {f32({1, 1}), i32({1})}, 2),
              "a label is 2, but the loss expects 0 or 1; for more than two classes use the loss cross_entropy");
  }
  EXPECT_EQ(share_refusal(1.5F),
            "binary_cross_entropy: expected targets from 0 to 1, found 1.5; for other "
            "numbers use the loss mean_squared_error");
  const Attributes vocabulary({{"vocabulary", std::int64_t{65}}, {"width", std::int64_t{2}}});
  EXPECT_EQ(data_refusal("embedding", vocabulary, {i32({1, 1})}, 65),
            "embedding: expected ids from 0 to 64, found 65; `vocabulary` must be as large as that of the data set");
}

}  // namespace lockstep::ops
