// The models are the published ones: they have the same numbers of parameters.
#include <gtest/gtest.h>

#include "lockstep/error.hpp"
#include "lockstep/trainer.hpp"

namespace lockstep {

namespace {

class Zoo : public testing::Test {
 protected:
  std::int64_t parameters(const std::string& model, std::map<std::string, Attribute> settings, const TensorSpec& sample,
                          std::int64_t classes, std::int64_t vocabulary = 0) {
    const ModelDef& definition = registries_.models.at(model);
    GraphBuilder builder(registries_.ops, 1);
    ModelContext context;
    context.inputs = {{"input", builder.input("input", sample)}};
    context.classes = classes;
    context.vocabulary = vocabulary;
    definition.build(builder, complete(definition.attributes, Attributes(std::move(settings)), model), context);
    std::int64_t count = 0;
    for (const auto id : builder.graph().parameters) count += builder.spec(id).elements();
    return count;
  }
  std::int64_t resnet(std::int64_t depth, std::int64_t side, std::int64_t classes) {
    return parameters("resnet", {{"depth", depth}}, {DType::f32, {side, side, 3}}, classes);
  }

  /// The message with which a model refuses its settings, for images of 28 x 30 or 8 tokens.
  std::string refusal(const std::string& model, std::map<std::string, Attribute> settings) {
    const bool text = model == "gpt" || model == "llama";
    const TensorSpec sample = !text ? TensorSpec{DType::f32, {28, 30, 3}} : TensorSpec{DType::i32, {8}};
    try {
      parameters(model, std::move(settings), sample, 10, model == "llama" ? 65 : 0);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::configuration);
      return error.what();
    }
    return "";
  }

  Registries registries_ = Registries::built_in();
};

}  // namespace

TEST_F(Zoo, ResNetsForSmallImages) {
  // Table 6 of the paper gives 0.27, 0.46, 0.66, 0.85 and 1.7 M, with shortcuts that have no weights; the two
  // 1 x 1 convolutions with norms of option B add 16 * 32 + 2 * 32 + 32 * 64 + 2 * 64 = 2,752.
  EXPECT_EQ(resnet(20, 32, 10), 269722 + 2752);
  EXPECT_EQ(resnet(32, 32, 10), 464154 + 2752);
  EXPECT_EQ(resnet(44, 32, 10), 658586 + 2752);
  EXPECT_EQ(resnet(56, 32, 10), 853018 + 2752);
  EXPECT_EQ(resnet(110, 32, 10), 1727962 + 2752);
}

TEST_F(Zoo, ResNetsForImageNet) {
  EXPECT_EQ(resnet(18, 224, 1000), 11689512);
  EXPECT_EQ(resnet(34, 224, 1000), 21797672);
  EXPECT_EQ(resnet(50, 224, 1000), 25557032);
}

TEST_F(Zoo, MobileNets) {
  const TensorSpec image{DType::f32, {224, 224, 3}};
  EXPECT_EQ(parameters("mobilenet", {}, image, 1000), 3504872);  // as torchvision's mobilenet_v2
  EXPECT_EQ(parameters("mobilenet", {{"width", 0.5}}, image, 1000), 1968680);
  EXPECT_EQ(parameters("mobilenet", {{"width", 0.35}, {"small", true}}, {DType::f32, {28, 28, 1}}, 10), 408650);
}

TEST_F(Zoo, UNet) {
  // As the common implementation of PyTorch with transposed convolutions, of three channels and two classes.
  EXPECT_EQ(parameters("unet", {{"outputs", std::int64_t{2}}}, {DType::f32, {96, 96, 3}}, 0), 31037698);
}

TEST_F(Zoo, Autoencoder) {
  // Convolutions, linear layers around the code, and transposed convolutions of 4 x 4.
  const std::int64_t down = 9 * 16 + 16 + 9 * 16 * 32 + 32, flat = 7 * 7 * 32;
  const std::int64_t up = 16 * 32 * 16 + 16 + 16 * 16 + 1;
  EXPECT_EQ(parameters("autoencoder", {}, {DType::f32, {28, 28, 1}}, 0), down + 32 * flat + 32 + 33 * flat + up);
}

TEST_F(Zoo, Gpt2) {
  const TensorSpec window{DType::i32, {1024}};
  const auto gpt2 = [&](const std::string& size) { return parameters("gpt", {{"size", size}}, window, 0, 50257); };
  EXPECT_EQ(gpt2("gpt2"), 124439808);
  EXPECT_EQ(gpt2("gpt2-medium"), 354823168);
  EXPECT_EQ(gpt2("gpt2-large"), 774030080);
  EXPECT_EQ(gpt2("gpt2-xl"), 1557611200);
  // A character model without biases: 65 characters, context 64.
  EXPECT_EQ(parameters("gpt", {{"bias", false}}, {DType::i32, {64}}, 0, 65), 804096);
}

TEST_F(Zoo, Llama) {
  const TensorSpec window{DType::i32, {4096}};
  EXPECT_EQ(parameters("llama", {{"size", "llama2-7b"}}, window, 0, 32000), 6738415616);
  EXPECT_EQ(parameters("llama", {{"size", "llama3-8b"}}, window, 0, 128256), 8030261248);
}

TEST_F(Zoo, LstmLanguageModels) {
  // The paper's sizes, of 10,000 words: 20 M and 66 M in later papers' tables.
  const TensorSpec window{DType::i32, {35}};
  EXPECT_EQ(parameters("lstm", {{"size", "medium"}}, window, 0, 10000), 19780400);
  EXPECT_EQ(parameters("lstm", {{"size", "large"}}, window, 0, 10000), 66034000);
  EXPECT_EQ(parameters("lstm", {{"size", "large"}, {"tied", true}}, window, 0, 10000), 66034000 - 15000000);
  EXPECT_EQ(parameters("lstm", {}, window, 0, 65), 148801);
}

TEST_F(Zoo, Berts) {
  // The published ones have two token types, two more rows of the width.
  const TensorSpec window{DType::i32, {512}};
  EXPECT_EQ(parameters("bert", {{"size", "base"}}, window, 0, 30522), 109514298 - 2 * 768);
  EXPECT_EQ(parameters("bert", {{"size", "large"}}, window, 0, 30522), 335174458 - 2 * 1024);
}

TEST_F(Zoo, VisionTransformers) {
  // The published ones have a class token and its position, two more rows of the width.
  const TensorSpec image{DType::f32, {224, 224, 3}};
  EXPECT_EQ(parameters("vit", {{"size", "small"}}, image, 1000), 22050664 - 2 * 384);
  EXPECT_EQ(parameters("vit", {{"size", "base"}}, image, 1000), 86567656 - 2 * 768);
  EXPECT_EQ(parameters("vit", {{"size", "large"}}, image, 1000), 304326632 - 2 * 1024);
}

TEST_F(Zoo, SizesThatDoNotFitAreRefused) {
  const std::int64_t three = 3;
  EXPECT_EQ(refusal("llama", {{"heads", three}}), "llama: expected a width of 3 heads of an even size, found 128");
  EXPECT_EQ(refusal("llama", {{"kv_heads", three}}), "llama: expected kv_heads that divide the 4 heads, found 3");
  EXPECT_EQ(refusal("gpt", {}), "gpt: vocabulary: the data set has none; train on text or tokens, or give it");
  EXPECT_EQ(refusal("vit", {}),
            "vit: expected images [batch, height, width, channels] whose sides are multiples of 4, found [1, 28, 30, "
            "3]; set `patch`");
  EXPECT_EQ(refusal("unet", {}),
            "unet: expected images [batch, height, width, channels] whose sides are multiples of 16, for a depth of 4, "
            "found [1, 28, 30, 3]; set `depth`, or resize the images");
  EXPECT_EQ(refusal("autoencoder", {}),
            "autoencoder: expected images [batch, height, width, channels] whose sides are multiples of 4, for a depth "
            "of 2, found [1, 28, 30, 3]; set `depth`, or resize the images");
}

TEST_F(Zoo, AnUnknownDepthIsNamed) {
  try {
    resnet(21, 32, 10);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_STREQ(error.what(),
                 "resnet: depth: expected 18, 34, 50 (larger images) or 20, 32, 44, 56, 110 (32 x 32), found 21");
  }
}

}  // namespace lockstep
