// LoRA: a model begins as it was, only adapters and what is named are trained, and no bit depends on ranks, sharding,
// parts, or a stop in between.
#include "graph/lora.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/error.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "train/gpt_job.hpp"
#include "train/outcome_of_ranks.hpp"
#include "train/small_run.hpp"

namespace lockstep {

namespace {

const std::string kLora = "model.lora={rank: 4, layers: [linear1]}";
const std::string kOfBlocks =
    "model.lora={rank: 2, alpha: 8, dropout: 0.1, layers: ['block*.qkv', 'block*.expand'], train: ['*norm*', "
    "'tokens.*']}";

std::map<std::string, std::vector<float>> tensors_of(const std::string& run, int step) {
  std::string why;
  const auto checkpoint = checkpoint::read_checkpoint(run + "/checkpoints/" + checkpoint::checkpoint_name(step), why);
  EXPECT_TRUE(checkpoint) << why;
  std::map<std::string, std::vector<float>> tensors;
  checkpoint::Targets targets;
  for (const auto& tensor : checkpoint->manifest.tensors) {
    auto& values = tensors[tensor.name];
    values.resize(static_cast<std::size_t>(elements(tensor.shape)));
    targets[tensor.name] = {tensor.shape, values};
  }
  checkpoint::load(*checkpoint, targets);
  return tensors;
}

std::string message_of(const std::vector<std::string>& overrides, const std::string& job = kResidualJob) {
  try {
    (void)run_job(job, 1, overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST(Lora, BeginsAsTheModelWas) {
  const Folder folder, plain_folder;
  Events events, plain;
  run(folder.path(), {kLora}, events);
  run(plain_folder.path(), {}, plain);
  EXPECT_EQ(events.of<events::Step>().front().loss, plain.of<events::Step>().front().loss);
  EXPECT_NE(events.of<events::Step>().back().loss, plain.of<events::Step>().back().loss);
  EXPECT_EQ(events.last<events::Start>().parameters, 7850 + 4 * 784 + 10 * 4);
  EXPECT_EQ(events.last<events::Start>().trained, 4 * 784 + 10 * 4);
  EXPECT_FALSE(plain.last<events::Start>().trained);
}

TEST(Lora, TrainsTheAdaptersAndWhatIsNamed) {
  for (const bool bias : {false, true}) {
    const Folder folder;
    Events events;
    run(folder.path(),
        {bias ? "model.lora={rank: 4, layers: linear1, train: linear1.bias}" : kLora,
         "checkpoint={every: 1 step, keep: 99}"},
        events);
    auto first = tensors_of(folder.path(), 1), last = tensors_of(folder.path(), 12);
    EXPECT_EQ(first.at("linear1.weight"), last.at("linear1.weight"));
    EXPECT_EQ(first.at("linear1.bias") == last.at("linear1.bias"), !bias);
    for (const char* name : {"linear1.lora_a.weight", "linear1.lora_b.weight"})
      EXPECT_NE(first.at(name), last.at(name));
    EXPECT_FALSE(last.contains("linear1.lora_a.bias"));
    const float bound = 1 / std::sqrt(784.0F) + 0.13F;  // twelve updates of at most about 0.01 each
    for (const float value : last.at("linear1.lora_a.weight")) EXPECT_LT(std::abs(value), bound);
  }
}

// Written by hand, the same layers have the same bits.
TEST(Lora, IsTwoLayersBesideOne) {
  const std::string lora =
      "model={layers: [flatten, {linear: {features: 12}, name: a}, relu, {linear: 10}], lora: {rank: 3, alpha: 5, "
      "dropout: 0.25, layers: a}}";
  const std::string by_hand =
      "model={layers: [flatten, {linear: {features: 12}, name: a}, {dropout: 0.25, inputs: flatten1, name: "
      "a.lora_dropout}, {linear: {features: 3, bias: false}, name: a.lora_a}, {linear: {features: 12, bias: false, "
      "init: "
      "zeros}, name: a.lora_b}, {scale: 1.6666666666666667}, {add: {inputs: [a, previous]}}, relu, {linear: {features: "
      "10}, name: linear2}], freeze: ['a.weight', 'a.bias', 'linear2.*']}";
  EXPECT_EQ(run_job(kResidualJob, 1, {lora}), run_job(kResidualJob, 1, {by_hand}));
}

TEST(Lora, RanksShardingAndPartsChangeNoBit) {
  const TextFile file;
  const std::string job = file.in(kGpt);
  const Outcome whole = run_job(job, 1, {kOfBlocks});
  EXPECT_NE(whole, run_job(job, 1, {}));
  for (const int ranks : {2, 3, 4}) {
    EXPECT_EQ(run_job(job, ranks, {kOfBlocks}), whole) << ranks << " ranks";
    for (const char* sharding : {"optimizer", "gradients", "parameters"}) {
      const std::string words = std::string("parallel.sharding=") + sharding;
      EXPECT_EQ(run_job(job, ranks, {kOfBlocks, words}), whole) << sharding << ", " << ranks << " ranks";
    }
    EXPECT_EQ(run_job(job, ranks, {kOfBlocks, "parallel.parts=2", "recompute=blocks"}), whole) << ranks << " ranks";
  }
}

TEST(Lora, NorDoesAStop) {
  const TextFile file;
  const std::string job = file.in(kGpt);
  const Outcome whole = run_job(job, 1, {kOfBlocks});
  const Folder folder;
  Outcome last;
  for (const auto& [ranks, stop] : {std::pair{2, 2}, {1, 4}, {3, 0}}) {
    TrainerOptions options;
    options.stop_at = stop;
    last =
        run_job(job, ranks, {kOfBlocks, "checkpoint={every: 1 step}", "run_directory=" + folder.path()}, {}, options);
  }
  EXPECT_EQ(last, whole);
}

TEST(Lora, ALayerOfAListKeepsItsName) {
  const std::string layers =
      "model={layers: [flatten, {linear: 12, name: a}, {linear: 12, name: b}, {add: {inputs: [a, previous]}}, {linear: "
      "10}], lora: {layers: [a, b]}}";
  EXPECT_NE(run_job(kResidualJob, 1, {layers}).parameters, "");
}

TEST(Lora, WhatItRefuses) {
  const TextFile file;
  const std::string gpt = file.in(kGpt), place = "command line: model.lora: lora: ";
  EXPECT_EQ(message_of({"model.lora={layers: linaer1}"}),
            place + "layers: no linear layer matches 'linaer1'; did you mean 'linear1'?; `lockstep show` names them");
  EXPECT_EQ(message_of({"model.lora={layers: linear1, train: stem.wieght}"}),
            place + "train: no parameter matches 'stem.wieght'; did you mean 'stem.weight'?");
  EXPECT_EQ(
      message_of({"model.lora={layers: head}"}, gpt),
      place + "expected layers whose weights are their own, found 'head', which shares the weight of another layer");
  const std::string tied =
      "model={layers: [flatten, {linear: 784, name: a}, {linear: {features: 784, tied: a}}, {linear: 10}], lora: "
      "{layers: a}}";
  EXPECT_EQ(message_of({tied}),
            "command line: model.layers[2]: lora: expected layers whose weights are their own, found 'a', whose weight "
            "'linear2' shares; leave it out of layers");
}

TEST(Lora, MergesIntoOneWeight) {
  const std::vector<float> weight{1, 2, 3, 4, 5, 6}, a{1, 0, 2, 0, 1, 1}, b{1, 2, 0.5F, -1};
  // b a = [[1, 2, 4], [0.5, -1, 0]]
  EXPECT_EQ(merged_weight(weight, a, b, 2, 0.5), (std::vector<float>{1.5F, 3, 5, 4.25F, 4.5F, 6}));
}

}  // namespace lockstep
