// What other libraries call the tensors of the zoo's models.
#include "graph/foreign_names.hpp"

#include <gtest/gtest.h>

namespace lockstep {

namespace {

const ForeignModel& model(const std::string& name) {
  for (const ForeignModel& known : foreign_models()) {
    if (known.name() == name) return known;
  }
  throw std::runtime_error(name);
}

std::string theirs(const std::string& name, const std::string& ours) {
  const auto found = model(name).find(ours);
  std::string names;
  for (const std::string& part : found ? found->names : std::vector<std::string>()) {
    names += (names.empty() ? "" : " ") + part;
  }
  return names;
}

Graph graph_of(const std::vector<std::string>& parameters) {
  Graph graph;
  for (const auto& name : parameters) {
    graph.parameters.push_back(static_cast<ValueId>(graph.values.size()));
    graph.values.push_back({.name = name, .role = Role::parameter, .spec = {DType::f32, {1}}, .initializer = {}});
  }
  return graph;
}

}  // namespace

TEST(ForeignNames, ResNet) {
  EXPECT_EQ(theirs("resnet", "stem.conv.weight"), "conv1.weight");
  EXPECT_EQ(theirs("resnet", "stem.norm.running_variance"), "bn1.running_var");
  EXPECT_EQ(theirs("resnet", "stage2.block1.shortcut.norm.running_mean"), "layer2.0.downsample.1.running_mean");
  EXPECT_EQ(theirs("resnet", "stage4.block12.3.conv.weight"), "layer4.11.conv3.weight");
  EXPECT_EQ(theirs("resnet", "head.bias"), "fc.bias");
  EXPECT_EQ(theirs("resnet", "stage5.block1.1.conv.weight"), "");
  EXPECT_EQ(theirs("resnet", "stage1.blockA.1.conv.weight"), "");
}

TEST(ForeignNames, MobileNetCountsBlocksThroughAllStages) {
  EXPECT_EQ(theirs("mobilenet", "stage1.block1.depthwise.conv.weight"), "features.1.conv.0.0.weight");
  EXPECT_EQ(theirs("mobilenet", "stage1.block1.project.norm.bias"), "features.1.conv.2.bias");
  EXPECT_EQ(theirs("mobilenet", "stage1.block1.expand.conv.weight"), "");
  EXPECT_EQ(theirs("mobilenet", "stage2.block1.expand.conv.weight"), "features.2.conv.0.0.weight");
  EXPECT_EQ(theirs("mobilenet", "stage7.block1.project.conv.weight"), "features.17.conv.2.weight");
  EXPECT_EQ(theirs("mobilenet", "last.norm.running_variance"), "features.18.1.running_var");
}

TEST(ForeignNames, AdaptersHaveTheNamesOfPeft) {
  EXPECT_EQ(theirs("gpt2", "block2.qkv.lora_a.weight"), "base_model.model.transformer.h.1.attn.c_attn.lora_A.weight");
  EXPECT_EQ(theirs("gpt2", "block2.qkv.lora_b.weight"), "base_model.model.transformer.h.1.attn.c_attn.lora_B.weight");
  EXPECT_EQ(theirs("llama", "block1.query.lora_b.weight"),
            "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight");
  const auto b = model("gpt2").find("block2.qkv.lora_b.weight");
  EXPECT_EQ(b->shape_there({12, 3}), (Shape{12, 3})) << "of Conv1D, too";
  const std::string self = "base_model.model.bert.encoder.layer.0.attention.self.";
  EXPECT_EQ(theirs("bert", "block1.qkv.lora_a.weight"),
            self + "query.lora_A.weight " + self + "key.lora_A.weight " + self + "value.lora_A.weight");
  EXPECT_EQ(model("bert").find("block1.qkv.lora_a.weight")->shape_there({3, 4}), (Shape{3, 4}));
  EXPECT_EQ(model("bert").find("block1.qkv.lora_b.weight")->shape_there({12, 3}), (Shape{4, 3}));
  EXPECT_EQ(theirs("resnet", "head.lora_a.weight"), "fc.lora_a.weight");
  EXPECT_FALSE(model("gpt2").find("lstm1.lora_a.weight"));
}

TEST(ForeignNames, Transformers) {
  const auto qkv = model("gpt2").find("block3.qkv.weight");
  ASSERT_TRUE(qkv);
  EXPECT_EQ(qkv->names, std::vector<std::string>{"transformer.h.2.attn.c_attn.weight"});
  EXPECT_TRUE(qkv->transposed);
  EXPECT_FALSE(model("gpt2").find("block3.qkv.bias")->transposed);
  EXPECT_EQ(theirs("llama", "block10.down.weight"), "model.layers.9.mlp.down_proj.weight");
  EXPECT_EQ(model("llama").find("head.weight")->tied, "model.embed_tokens.weight");
}

TEST(ForeignNames, Encoders) {
  const std::string self = "bert.encoder.layer.11.attention.self.";
  EXPECT_EQ(theirs("bert", "block12.qkv.bias"), self + "query.bias " + self + "key.bias " + self + "value.bias");
  EXPECT_EQ(theirs("bert", "embedding.norm.weight"), "bert.embeddings.LayerNorm.weight");
  EXPECT_EQ(theirs("bert", "transform.norm.bias"), "cls.predictions.transform.LayerNorm.bias");
  EXPECT_EQ(theirs("bert", "transform.weight"), "cls.predictions.transform.dense.weight");
  EXPECT_EQ(theirs("bert", "head.bias"), "cls.predictions.bias");
  EXPECT_EQ(theirs("vit", "block1.norm2.weight"), "vit.encoder.layer.0.layernorm_after.weight");
  EXPECT_EQ(theirs("vit", "patches.bias"), "vit.embeddings.patch_embeddings.projection.bias");
  EXPECT_EQ(theirs("vit", "head.weight"), "classifier.weight");
}

TEST(ForeignNames, ShapesThere) {
  EXPECT_EQ(model("vit").find("positions.weight")->shape_there({5, 7}), (Shape{1, 5, 7}));
  EXPECT_EQ(model("vit").find("block1.qkv.weight")->shape_there({12, 4}), (Shape{4, 4}));
  EXPECT_EQ(model("gpt2").find("block1.qkv.weight")->shape_there({12, 4}), (Shape{4, 12}));
  EXPECT_EQ(model("llama").find("norm.weight")->shape_there({4}), (Shape{4}));
}

// Without them the same names have another meaning: positions that hold the token types, too, and a mean.
TEST(ForeignNames, EncodersNeedTheirOwnTensors) {
  const std::vector<std::string> bert = {"tokens.weight", "positions.weight", "block1.qkv.weight",
                                         "embedding.norm.bias"};
  EXPECT_EQ(foreign_model(WeightNames::huggingface, graph_of(bert)), nullptr);
  auto typed = bert;
  typed.emplace_back("types.weight");
  ASSERT_NE(foreign_model(WeightNames::huggingface, graph_of(typed)), nullptr);
  EXPECT_EQ(foreign_model(WeightNames::huggingface, graph_of(typed))->name(), "bert");
  EXPECT_EQ(foreign_model(WeightNames::huggingface, graph_of({"patches.weight", "positions.weight"})), nullptr);
  EXPECT_NE(foreign_model(WeightNames::huggingface, graph_of({"patches.weight", "class_token.weight"})), nullptr);
}

TEST(ForeignNames, AModelIsOneOfWhichAllTensorsAreKnown) {
  const Graph gpt = graph_of({"tokens.weight", "positions.weight", "block1.qkv.weight", "norm.weight"});
  ASSERT_NE(foreign_model(WeightNames::huggingface, gpt), nullptr);
  EXPECT_EQ(foreign_model(WeightNames::huggingface, gpt)->name(), "gpt2");
  EXPECT_EQ(foreign_model(WeightNames::torchvision, gpt), nullptr);
  EXPECT_EQ(foreign_model(WeightNames::huggingface, graph_of({"tokens.weight", "lstm1.weight_ih"})), nullptr);
  EXPECT_EQ(foreign_model(WeightNames::huggingface, graph_of({})), nullptr);
}

TEST(ForeignNames, OfTorchForLayersOfBoth) {
  EXPECT_EQ(torch_name("norm.running_variance"), "norm.running_var");
  EXPECT_EQ(torch_name("norm.running_mean"), "norm.running_mean");
  EXPECT_EQ(torch_name("running_variance"), "running_var");
}

TEST(ForeignNames, DirectionsOfALayerAreOneModuleOfTorch) {
  EXPECT_EQ(torch_name("lstm1.weight_ih"), "lstm1.weight_ih_l0");
  EXPECT_EQ(torch_name("a.rnn.forwards.bias_hh"), "a.rnn.bias_hh_l0");
  EXPECT_EQ(torch_name("rnn.backwards.weight_hh"), "rnn.weight_hh_l0_reverse");
  EXPECT_EQ(torch_name("backwards.bias_ih"), "backwards.bias_ih_l0");
  EXPECT_EQ(torch_name("rnn.backwards.weight"), "rnn.backwards.weight");
}

}  // namespace lockstep
