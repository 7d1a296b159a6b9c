// What happens to parameters: initial values from a file, frozen ones, clipping, decay; and that an evaluation counts
// every sample once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <mutex>

#include "lockstep/error.hpp"
#include "run/checkpoint/safetensors.hpp"
#include "run/train/job_graph.hpp"
#include "train/small_run.hpp"

namespace lockstep {

namespace {

using checkpoint::SafetensorsFile;
using Values = std::vector<float>;

/// A run of `steps` steps; returns the model's file.
std::string trained(const Folder& folder, const std::string& name, std::vector<std::string> overrides,
                    Events* events = nullptr, const std::string& steps = "1") {
  Events own;
  overrides.insert(overrides.end(), {"steps=" + steps, "evaluate=never"});
  (void)run(folder.path() + "/" + name, overrides, events == nullptr ? own : *events);
  return fmt::format("{}/{}/checkpoints/step-{:08}/model.safetensors", folder.path(), name, std::stoll(steps));
}

Values tensor(const std::string& file, const std::string& name) {
  const auto opened = SafetensorsFile::read(file);
  const auto& found = opened.tensors().at(name);
  Values values(found.bytes.size() / sizeof(float));
  opened.copy(name, found.shape, values);
  return values;
}

std::string written(const Folder& folder, const std::vector<checkpoint::NamedSpan>& tensors) {
  const std::string path = folder.path() + "/weights.safetensors";
  std::ofstream(path, std::ios::binary) << checkpoint::to_safetensors(tensors, {});
  return path;
}

std::string message_of(const Folder& folder, const std::vector<std::string>& overrides, ExitCode code) {
  try {
    (void)trained(folder, "refused", overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "no error";
}

constexpr const char* kStill = "learning_rate=1e-300";  // 0 in fp32: an update that changes no bit

}  // namespace

TEST(Initialize, TakesTheWholeFileOrWhatPatternsChoose) {
  const Folder folder;
  const std::string first = trained(folder, "first", {"seed=5"}, nullptr, "4");
  const std::string plain = trained(folder, "plain", {kStill});
  const std::string whole = trained(folder, "whole", {kStill, "initialize=" + first});
  const std::string part = trained(folder, "part", {kStill, "initialize={from: " + first + ", only: '*.bias'}"});
  for (const char* name : {"linear1.weight", "linear1.bias"}) {
    EXPECT_EQ(tensor(whole, name), tensor(first, name)) << name;
    EXPECT_NE(tensor(plain, name), tensor(first, name)) << name;
  }
  EXPECT_EQ(tensor(part, "linear1.bias"), tensor(first, "linear1.bias"));
  EXPECT_EQ(tensor(part, "linear1.weight"), tensor(plain, "linear1.weight"));
}

TEST(Initialize, SaysWhatDoesNotFit) {
  const Folder folder;
  const Values weight(10 * 784), bias(9);
  const std::string path = written(folder, {{"linear1.weight", {10, 784}, weight}, {"linear1.bias", {9}, bias}});
  EXPECT_EQ(message_of(folder, {"initialize=" + path}, ExitCode::data),
            path +
                ": expected 2 tensors of the model, found 1 that fit\n"
                "  tensor 'linear1.bias': expected F32 [10], found F32 [9]\n"
                "  initialize.only takes some of the parameters");
  EXPECT_EQ(message_of(folder,
                       {"model.layers=[flatten, {linear: {features: 10}, name: linear2}]",
                        "initialize={from: " + path + ", only: ['linear2.*']}"},
                       ExitCode::data),
            path +
                ": expected 2 tensors of the model, found 0 that fit\n"
                "  only in the model: linear2.weight [10, 784], linear2.bias [10]\n"
                "  only in the file: linear1.bias [9], linear1.weight [10, 784]\n"
                "  likely the same, for initialize.map: linear2.weight: linear1.weight\n"
                "  initialize.only takes some of the parameters");
  EXPECT_EQ(message_of(folder, {"initialize={from: " + path + ", only: ['linear.weight']}"}, ExitCode::configuration),
            "command line: initialize.only: expected a pattern over the model's parameters, but none matches "
            "'linear.weight'; did you mean 'linear1.weight'?");
}

TEST(Freeze, LeavesParametersAsTheyWere) {
  const Folder folder;
  const std::string before = trained(folder, "before", {kStill});
  const std::string after = trained(folder, "after", {"model.freeze='*.weight'"}, nullptr, "3");
  EXPECT_EQ(tensor(after, "linear1.weight"), tensor(before, "linear1.weight"));
  EXPECT_NE(tensor(after, "linear1.bias"), tensor(before, "linear1.bias"));
}

TEST(Clipping, ScalesTheWholeGradientToTheNorm) {
  const Folder folder;
  Events events;
  const std::vector<std::string> plain = {"optimizer=sgd", "learning_rate=1"};
  const std::string before = trained(folder, "before", {"optimizer=sgd", kStill});
  const std::string free = trained(folder, "free", plain);
  auto clipped_job = plain;
  clipped_job.emplace_back("clip_norm=0.25");
  const std::string clipped = trained(folder, "clipped", clipped_job, &events);
  double square = 0;
  for (const char* name : {"linear1.weight", "linear1.bias"}) {
    const auto p = tensor(before, name), q = tensor(free, name);
    for (std::size_t i = 0; i < p.size(); ++i)
      square += std::pow(static_cast<double>(p[i]) - static_cast<double>(q[i]), 2);
  }
  const double norm = std::sqrt(square);
  ASSERT_GT(norm, 0.3);  // otherwise nothing is clipped
  EXPECT_NEAR(events.last<events::Step>().gradient_norm.value(), norm, 1e-4 * norm);
  for (const char* name : {"linear1.weight", "linear1.bias"}) {
    const auto p = tensor(before, name), q = tensor(free, name), r = tensor(clipped, name);
    for (std::size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(r[i], p[i] + (q[i] - p[i]) * 0.25 / norm, 1e-6) << name << i;
  }
}

TEST(Decay, LeavesOutNormsAndBiasesUnlessAsked) {
  const Registries registries = Registries::built_in();
  const JobFile job =
      config::load_text(kJob, "job.yaml",
                        {"model.layers=[{conv: {filters: 4, kernel: 3}}, batch_norm, flatten, layer_norm, "
                         "{linear: {features: 10}}]"},
                        train::catalogue_of(registries), false);
  const auto data = input::learn(job.data, job.seed, job.batch_size, registries, {});
  const Graph graph = train::make_job_graph(job, data, registries);
  std::vector<std::string> decay;
  for (const ValueId id : graph.parameters) {
    if (graph.at(id).decay) decay.push_back(graph.at(id).name);
  }
  EXPECT_EQ(decay, (std::vector<std::string>{"conv1.weight", "linear1.weight"}));

  const Folder folder;
  const std::vector<std::string> with = {"optimizer={sgd: {weight_decay: 0.5}}"},
                                 all = {"optimizer={sgd: {weight_decay: 0.5, decay_all: true}}"};
  const std::string none = trained(folder, "none", {"optimizer=sgd"}), some = trained(folder, "some", with),
                    every = trained(folder, "every", all);
  EXPECT_EQ(tensor(some, "linear1.bias"), tensor(none, "linear1.bias"));
  EXPECT_NE(tensor(some, "linear1.weight"), tensor(none, "linear1.weight"));
  EXPECT_NE(tensor(every, "linear1.bias"), tensor(none, "linear1.bias"));
  EXPECT_EQ(tensor(every, "linear1.weight"), tensor(some, "linear1.weight"));
}

// With zero weights the scores are equal, so class 0 is predicted: the accuracy is the share of zeros, exactly.
TEST(Evaluation, CountsEverySampleOnceOnAnyRanks) {
  const Folder folder;
  const Values weight(10 * 784), bias(10);
  const std::string path = written(folder, {{"linear1.weight", {10, 784}, weight}, {"linear1.bias", {10}, bias}});
  const Registries registries = Registries::built_in();
  for (const int samples : {37, 40, 3}) {
    const JobFile job = config::load_text(kJob, "job.yaml",
                                          {kStill, "steps=1", "checkpoint=never", "initialize=" + path,
                                           fmt::format("data.validation.digits.count={}", samples)},
                                          train::catalogue_of(registries), false);
    const auto data = input::learn(job.data, job.seed, job.batch_size, registries, {});
    int zeros = 0;
    for (int i = 0; i < samples; ++i) zeros += data.validation->label(i) == 0 ? 1 : 0;
    for (const int ranks : {1, 2, 3, 4}) {
      std::mutex mutex;
      run_in_threads(ranks, [&](Communicator& communicator) {
        const auto result = train_job(job, communicator, registries);
        const std::lock_guard lock(mutex);
        EXPECT_DOUBLE_EQ(result.metrics.at("accuracy"), static_cast<double>(zeros) / samples) << samples << ranks;
        EXPECT_NEAR(result.metrics.at("loss"), std::log(10.0), 1e-6);
      });
    }
  }
}

}  // namespace lockstep
