// Texts of several lengths in one batch: what stands behind their ends changes no bit of what a model learns or says,
// and neither does how much of it there is, on any number of ranks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "config/config.hpp"
#include "data/open.hpp"
#include "lockstep/trained_model.hpp"
#include "run/train/catalogue.hpp"
#include "train/outcome_of_ranks.hpp"
#include "train/small_run.hpp"

namespace lockstep {

namespace {

constexpr const char* kTexts =
    "text,label\n"
    "the pipe leaks,water\nno light,lamp\nwater in my cellar,water\na lamp is out,lamp\nwet,water\ndark street,lamp\n"
    "it drips,water\nthe bulb flickers,lamp\n";

constexpr const char* kJobOfTexts = R"(
job:
  name: padded
  seed: 5
  model: {bert: {layers: 2, heads: 2, width: 16, positions: 90}}
  data: {train: {texts: {path: texts.csv, context: 20}}}
  batch_size: 8
  micro_batches: 4
  steps: 5
  metrics: [accuracy]
  optimizer: adam
  learning_rate: 0.01
  evaluate: never
)";

/// Each op that counts positions, on both ways through a recurrent layer.
constexpr const char* kLayers = R"(model={layers: [
  {embedding: {vocabulary: 256, width: 12}, inputs: tokens}, {position_embedding: 90}, {linear: 36, block: look},
  {attention: {heads: 2, causal: false, inputs: [previous, length]}, name: seen, block: look},
  {gru: 10}, {last: {inputs: [previous, length]}, name: end},
  {reverse: {inputs: [seen, length]}}, {lstm: 8}, {last: {inputs: [previous, length]}, name: beginning},
  {mask: {inputs: [seen, length]}}, {max: {axis: 1, inputs: [previous, length]}, name: most},
  {global_pool: {inputs: [seen, length]}, name: middle},
  {concat: {inputs: [end, beginning, most, middle]}}, {linear: 2}]})";

/// The same texts, with other tokens behind their ends.
class OtherPadding final : public DataSet {
 public:
  explicit OtherPadding(std::shared_ptr<const DataSet> set) : set_(std::move(set)) {}
  [[nodiscard]] const DataSetInfo& info() const override { return set_->info(); }
  [[nodiscard]] std::int64_t size() const override { return set_->size(); }
  [[nodiscard]] std::int64_t label(std::int64_t id) const override { return set_->label(id); }
  void read(std::int64_t id, Sample& out) const override {
    set_->read(id, out);
    const auto tokens = out[0].tensor.as<std::int32_t>();
    const auto length = static_cast<std::size_t>(out[1].tensor.as<std::int32_t>()[0]);
    for (std::size_t t = length; t < tokens.size(); ++t) tokens[t] = static_cast<std::int32_t>((7 * t + 31 * id) % 256);
  }

 private:
  std::shared_ptr<const DataSet> set_;
};

class PaddedTexts : public testing::TestWithParam<const char*> {
 protected:
  PaddedTexts() { std::ofstream(folder_.path() + "/texts.csv") << kTexts; }

  [[nodiscard]] JobFile job(std::vector<std::string> overrides) const {
    overrides.push_back("data.train.texts.path=" + folder_.path() + "/texts.csv");
    if (*GetParam() != '\0') overrides.emplace_back(GetParam());
    return config::load_text(kJobOfTexts, "job.yaml", overrides, train::catalogue_of(registries_), false);
  }
  /// Trains in a folder of its own; returns what it learnt.
  [[nodiscard]] std::string learnt(const std::string& name, bool other_padding, int ranks,
                                   std::vector<std::string> overrides = {}) const {
    overrides.push_back("run_directory=" + folder_.path() + "/" + name);
    const JobFile file = job(overrides);
    DataSets sets{data::open(file.data.train), nullptr};
    if (other_padding) sets.train = std::make_shared<OtherPadding>(sets.train);
    std::vector<std::string> learnt(static_cast<std::size_t>(ranks));
    run_in_threads(ranks, [&](Communicator& communicator) {
      learnt[static_cast<std::size_t>(communicator.rank())] =
          train_job(file, communicator, registries_, {}, sets).parameters_sha256;
    });
    return learnt.front();
  }

  Folder folder_;
  Registries registries_ = Registries::built_in();
};

std::string name_of_model(const testing::TestParamInfo<const char*>& info) {
  return info.index == 0 ? "Bert" : "Layers";
}

/// Makes weights that another program might have written, which do not know the context of their texts.
void forget_schema(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  bytes.replace(bytes.find("\"data\":"), 7, "\"DATA\":");
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

TEST_P(PaddedTexts, WhatStandsThereIsNeverSeen) {
  const std::string alone = learnt("zeros", false, 1);
  EXPECT_EQ(learnt("others", true, 1), alone);
  EXPECT_EQ(learnt("others_of_ranks", true, 3), alone);
  EXPECT_EQ(learnt("zeros_of_ranks", false, 2), alone);
  EXPECT_EQ(learnt("in_parts", true, 2, {"parallel.parts=2"}), alone);
  EXPECT_EQ(learnt("recomputed", true, 1, {"recompute=blocks"}), alone);
}

TEST_P(PaddedTexts, ALongerContextChangesNoBit) {
  const std::string weights = folder_.path() + "/weights.safetensors";
  (void)learnt("run", false, 1);
  const auto alone = make_single_communicator();
  std::vector<std::vector<float>> first;
  for (const char* context : {"20", "21", "70", "90"}) {
    const JobFile longer = job({fmt::format("data.train.texts.context={}", context)});
    const auto texts = data::open(longer.data.train);
    const std::string which = first.empty() ? folder_.path() + "/run/checkpoints/step-00000005" : weights;
    TrainedModel model(first.empty() ? job({"run_directory=" + folder_.path() + "/run"}) : longer, which, registries_,
                       *alone);
    if (first.empty()) {
      model.save(weights);
      forget_schema(weights);
    }
    std::vector<std::vector<float>> predictions(static_cast<std::size_t>(texts->size()));
    model.predict(*texts, [&](std::int64_t id, std::span<const float> values) {
      predictions[static_cast<std::size_t>(id)].assign(values.begin(), values.end());
    });
    if (first.empty()) first = predictions;
    for (std::size_t id = 0; id < first.size(); ++id) {
      EXPECT_EQ(std::memcmp(predictions[id].data(), first[id].data(), first[id].size() * sizeof(float)), 0)
          << "text " << id << " in a context of " << context;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PaddedTexts, testing::Values("", kLayers), name_of_model);

}  // namespace lockstep
