// Position by position with kept keys and values, a model has the bits of its whole window.
#include "step/exec/cached_model.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "graph/zoo.hpp"
#include "lockstep/graph_builder.hpp"
#include "lockstep/registry.hpp"
#include "ops/registry.hpp"
#include "step/exec/cpu_device.hpp"
#include "step/exec/executor.hpp"

namespace lockstep::exec {

namespace {

constexpr std::int64_t kContext = 150, kVocabulary = 37;  // two blocks of attention, and some of a third

class TokenSource final : public InputSource {
 public:
  TokenSource() : tokens_({DType::i32, {1, kContext}}) {
    std::uint32_t random = 5;
    for (auto& token : tokens_.as<std::int32_t>()) {
      random = random * 1664525U + 1013904223U;
      token = static_cast<std::int32_t>((random >> 10U) % kVocabulary);
    }
  }
  void get(std::uint64_t /*step*/, int /*micro-batch*/, MicroBatchInputs& inputs) override {
    inputs.tensors = {tokens_.bytes()};
    inputs.valid = 1;
  }
  void release(std::uint64_t /*step*/, int /*micro-batch*/) override {}
  [[nodiscard]] std::span<const std::int32_t> tokens() { return tokens_.as<std::int32_t>(); }

 private:
  Tensor tokens_;
};

struct Whole {
  explicit Whole(const ModelDef& model, const Attributes& given) {
    ops::add_built_in(registry);
    GraphBuilder b(registry, 1);
    const ValueId tokens = b.input("tokens", {DType::i32, {kContext}});
    ModelContext context;
    context.inputs = {{"tokens", tokens}};
    context.vocabulary = kVocabulary;
    b.graph().output = model.build(b, complete(model.attributes, given, model.name), context);
    graph = std::move(b.graph());
    parameters = TensorBlock(graph, graph.parameters);
    states = TensorBlock(graph, graph.states);
    for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
      const Value& value = graph.at(graph.parameters[i]);
      initialize(Initializer::normal(value.spec.shape.size() == 1 ? 0.7 : 0.2), 3, value.name, parameters.at(i));
    }
  }
  [[nodiscard]] std::vector<float> prediction() {
    WorkerPool pool(1);
    Executor executor(graph, Mode::inference, device, pool, 1);
    executor.use({parameters, states});
    std::vector<float> all;
    const std::array one = {0};
    executor.evaluate({.micro_batches = one}, source, [&](const EvaluatedMicroBatch& micro_batch) {
      all.assign(micro_batch.prediction, micro_batch.prediction + kContext * kVocabulary);
    });
    return all;
  }
  OpRegistry registry;
  Graph graph;
  CpuDevice device;
  TensorBlock parameters, states;
  TokenSource source;
};

void expect_same_bits(const ModelDef& model, const Attributes& attributes) {
  Whole whole(model, attributes);
  ASSERT_EQ(CachedModel::refusal(whole.graph), "");
  const auto expected = whole.prediction();
  for (const std::int64_t prompt : {1, 2, 63, 64, 65, 130, 150}) {
    CachedModel cached(whole.graph, {whole.parameters, whole.states});
    const auto tokens = whole.source.tokens();
    for (std::int64_t at = 0; at < kContext;) {
      const std::int64_t count = at == 0 ? prompt : 1;
      const auto scores = cached.append(tokens.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(count)));
      at += count;
      ASSERT_EQ(cached.positions(), at);
      ASSERT_EQ(std::memcmp(scores.data(), expected.data() + (at - 1) * kVocabulary, scores.size_bytes()), 0)
          << model.name << ", a prompt of " << prompt << ", position " << at - 1;
    }
  }
}

}  // namespace

TEST(CachedModel, HasTheBitsOfTheWholeWindow) {
  const auto sizes = [](std::int64_t heads) {
    return Attributes({{"layers", std::int64_t{3}}, {"heads", heads}, {"width", std::int64_t{48}}});
  };
  ModelRegistry models;
  models::add_built_in(models);
  expect_same_bits(models.at("gpt"), sizes(3));
  Attributes llama = sizes(6);
  llama.set("kv_heads", std::int64_t{2});
  expect_same_bits(models.at("llama"), llama);
}

}  // namespace lockstep::exec
