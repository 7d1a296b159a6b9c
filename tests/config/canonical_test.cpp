// The canonical form is itself a complete job; the digest changes if and only if the result does.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "config/config.hpp"
#include "config/test_catalogue.hpp"

namespace lockstep::config {
namespace {

constexpr const char* kShortJob = R"(job:
  model: {layers: [{conv: {filters: 8, kernel: 3}, name: stem}, relu, {add: {inputs: [previous, stem]}}, {linear: {features: 10}}]}
  data: {train: {images: data/train.tar}, validation: {fraction: 0.1}, augment: [flip, {crop: 2}]}
  metrics: accuracy
  epochs: 3
  learning_rate: {peak: 0.1, schedule: cosine}
)";

JobFile load_with(const std::vector<std::string>& overrides) {
  return load_text(kShortJob, "job.yaml", overrides, test_catalogue(), false);
}

CanonicalJob canonical_with(const std::vector<std::string>& overrides) {
  return canonical(load_with(overrides), test_catalogue());
}

std::vector<std::string> examples() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(EXAMPLES)) {
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path().string());
  }
  return paths;
}

TEST(Canonical, ReadsAsTheSameJob) {
  std::vector<JobFile> jobs{load_with({}), default_job({}, test_catalogue())};
  for (const auto* parts :
       {"parallel.parts=3", "parallel.parts=[{until: stem}, {}]", "parallel.parts.branches=auto",
        "parallel.parts=[{until: stem, ranks: 2}, {ranks: 1}]", "model.layers[1]={relu: {}, part: a}"}) {
    jobs.push_back(load_with({parts}));
  }
  for (const auto& path : examples()) jobs.push_back(load(path, {}, test_catalogue(), false));
  for (const auto& job : jobs) {
    const CanonicalJob form = canonical(job, test_catalogue());
    const CanonicalJob again =
        canonical(load_text(form.text, "other.json", {}, test_catalogue(), false), test_catalogue());
    EXPECT_EQ(again.text, form.text);
    EXPECT_EQ(again.digest, form.digest) << job.name;
  }
}

TEST(Canonical, HasEveryDefault) {
  const auto job = nlohmann::json::parse(canonical_with({}).text).at("job");
  EXPECT_EQ(job["optimizer"]["sgd"]["momentum"], 0.0);
  EXPECT_EQ(job["learning_rate"]["schedule"]["cosine"]["final"], 0.0);
  EXPECT_EQ(job["model"]["layers"][0]["conv"]["stride"], nlohmann::json::array({1}));
  EXPECT_EQ(job["model"]["layers"][2]["inputs"], nlohmann::json::array({"previous", "stem"}));
  EXPECT_EQ(job["micro_batches"], 8);
}

TEST(Digest, IgnoresWhatChangesNoBit) {
  const std::string digest = canonical_with({}).digest;
  for (const auto* same : {"name=x",
                           "threads=2",
                           "run_directory=r",
                           "telemetry.tensorboard=true",
                           "telemetry.every=7 steps",
                           "balance=auto",
                           "timeout=5",
                           "bucket_bytes=4096",
                           "checkpoint=never",
                           "evaluate=never",
                           "metrics=[]",
                           "data.threads=2",
                           "data.cache=none",
                           "data.bad_samples=replace",
                           "data.train.images=/elsewhere/train.tar",
                           "data.test=digits",
                           "exact=preferred",
                           "device=cpu",
                           "micro_batches=8",
                           "parallel.parts=3",
                           "parallel.parts=[{until: stem}, {}]",
                           "parallel.in_flight=2",
                           "model.layers[1]={relu: {}, part: second, block: a}",
                           "optimizer=sgd",
                           "batch_size=6.4e+01"}) {
    EXPECT_EQ(canonical_with({same}).digest, digest) << same;
  }
}

TEST(Digest, SeesWhatChangesTheResult) {
  const std::string digest = canonical_with({}).digest;
  for (const auto* other : {"seed=2",
                            "epochs=4",
                            "steps=3",
                            "batch_size=128",
                            "micro_batches=16",
                            "optimizer.sgd.momentum=0.5",
                            "optimizer=adam",
                            "optimizer={sgd: {}, groups: [{match: stem.*, rate: 2}]}",
                            "optimizer={sgd: {}, groups: [{match: stem.*, freeze_until: 2 epochs}]}",
                            "learning_rate=0.1",
                            "clip_norm=1",
                            "exact=never",
                            "model.layers[0].conv.filters=9",
                            "data.augment=[]",
                            "data.train.images=data/other.tar",
                            "data.validation.fraction=0.2",
                            "data.normalize=never",
                            "loss.target=kind",
                            "loss.cross_entropy.label_smoothing=0.1",
                            "initialize=w.safetensors",
                            "early_stop.metric=loss"}) {
    EXPECT_NE(canonical_with({other}).digest, digest) << other;
  }
}

TEST(Digest, EvaluationMattersOnlyToEarlyStopping) {
  EXPECT_NE(canonical_with({"early_stop.metric=loss"}).digest,
            canonical_with({"early_stop.metric=loss", "evaluate.every=5 steps"}).digest);
  EXPECT_NE(canonical_with({"early_stop.metric=loss"}).digest,
            canonical_with({"early_stop={metric: loss, min_delta: 0.1}"}).digest);
  EXPECT_EQ(canonical_with({"early_stop.metric=loss", "checkpoint.best=loss"}).digest,
            canonical_with({"early_stop={metric: loss, restore_best: true}", "checkpoint.best=loss"}).digest);
}

TEST(Digest, EvaluationMattersToARateThatFollowsIt) {
  const std::string plateau = "learning_rate={peak: 0.1, schedule: plateau}";
  EXPECT_NE(canonical_with({plateau}).digest, canonical_with({plateau, "evaluate.every=5 steps"}).digest);
  EXPECT_NE(canonical_with({plateau}).digest, canonical_with({plateau, "metrics=[]"}).digest);
  const std::string cosine = "learning_rate={peak: 0.1, schedule: cosine}";
  EXPECT_EQ(canonical_with({cosine}).digest, canonical_with({cosine, "evaluate.every=5 steps"}).digest);
}

TEST(Differences, NameThePaths) {
  const auto from = [](const std::vector<std::string>& first, const std::vector<std::string>& second) {
    return differences(canonical_with(first).text, canonical_with(second).text);
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(from({}, {}), Texts{});
  EXPECT_EQ(from({"optimizer.adam.beta1=0.9"}, {"optimizer.adam.beta1=0.8", "seed=2"}),
            (Texts{"job.seed: 1, now 2", "job.optimizer.adam.beta1: 0.9, now 0.8"}));
  EXPECT_EQ(from({}, {"clip_norm=1", "early_stop.metric=loss"}),
            (Texts{R"(job.metrics: absent, now ["accuracy"])", "job.evaluate: absent, now {every}",
                   "job.early_stop: absent, now {metric, patience}", "job.clip_norm: never, now 1.0"}));
}

// A group that is never frozen is written as before there were others, so that its runs go on.
TEST(Digest, OfAGroupThatIsNotFrozenIsTheEarlierOne) {
  const auto of = [](const std::string& group) {
    return canonical_with({"optimizer={sgd: {}, groups: [" + group + "]}"});
  };
  const CanonicalJob plain = of("{match: stem.*, rate: 2}");
  EXPECT_EQ(plain.text.find("freeze_until"), std::string::npos);
  EXPECT_EQ(of("{match: stem.*, rate: 2, freeze_until: 0 steps}").digest, plain.digest);
}

// Earlier versions wrote tokens of its own, though it had those of the training set.
TEST(Digest, OfAValidationSetThatNamesNoTokensIsTheEarlierOne) {
  for (const auto& [kind, earlier] : {std::pair{"text", ", context: 64, tokenizer: characters"},
                                      {"texts", ", context: 128, tokenizer: bytes"},
                                      {"tokens", ", context: 64"}}) {
    const auto of = [&, kind = kind](const std::string& tokens) {
      return canonical_with({fmt::format("data.validation={{{}: {{path: data{}}}}}", kind, tokens)});
    };
    EXPECT_EQ(of("").digest, of(earlier).digest) << kind;
    EXPECT_EQ(run_identity(of("").text), run_identity(of(earlier).text)) << kind;
    EXPECT_NE(of("").digest, of(", context: 7").digest) << kind;
  }
}

TEST(Differences, LongValuesAreCut) {
  const std::string long_name(200, 'x');
  EXPECT_EQ(differences(canonical_with({"loss.target=kind"}).text, canonical_with({"loss.target=" + long_name}).text),
            std::vector<std::string>{"job.loss.target: kind, now " + std::string(45, 'x') + "..."});
}

TEST(Differences, OfAnotherKindAreOne) {
  const auto from = [](const std::vector<std::string>& second) {
    return differences(canonical_with({}).text, canonical_with(second).text);
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(from({"optimizer=adam"}), Texts{"job.optimizer: sgd, now adam"});
  EXPECT_EQ(from({"model=resnet", "micro_batches=8"}), Texts{"job.model: layers, now resnet"});
}

TEST(Differences, SomeCanChangeBetweenSteps) {
  for (const auto* path : {"learning_rate", "learning_rate.peak", "learning_rate.schedule.cosine.final", "clip_norm",
                           "optimizer.sgd.momentum", "optimizer.groups[0].rate", "loss.cross_entropy.label_smoothing",
                           "data.augment", "data.augment[1].crop.padding", "model.mlp.dropout",
                           "model.layers[3].dropout", "model.layers[3].dropout.rate"}) {
    EXPECT_TRUE(can_change_between_steps(path)) << path;
  }
  for (const auto* path : {"batch_size", "seed", "steps", "optimizer", "optimizer.groups", "model.mlp.widths",
                           "model.layers[0].conv.filters", "data.train.images", "data.augmentation", "lossy",
                           "precision", "metrics.dropout", "optimizer.groups[0].freeze_until"}) {
    EXPECT_FALSE(can_change_between_steps(path)) << path;
  }
  EXPECT_EQ(fixed_differences(canonical_with({}).text,
                              canonical_with({"learning_rate=0.5", "seed=2", "optimizer.sgd.momentum=0.5"}).text),
            std::vector<std::string>{"job.seed: 1, now 2"});
}

TEST(Examples, DigitsIsTheDefaultJob) {
  std::ifstream file(std::string(EXAMPLES) + "/digits.yaml");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), default_job_text());
}

}  // namespace
}  // namespace lockstep::config
