// The promise for models in parts: where a model is cut, and how many ranks compute each part, changes no bit.
#include <gtest/gtest.h>

#include <filesystem>

#include "train/gpt_job.hpp"
#include "train/outcome_of_ranks.hpp"
#include "train/small_run.hpp"

namespace lockstep {

namespace {

// Two towers that do not depend on each other.
constexpr const char* kTowers = R"(
job:
  name: towers
  model:
    inputs: [left, right]
    layers:
      - {conv: {filters: 4, kernel: 3, stride: 2}, inputs: left}
      - relu
      - flatten
      - {linear: {features: 16}, name: left_tower}
      - {conv: {filters: 4, kernel: 3, stride: 2}, inputs: right}
      - relu
      - flatten
      - {linear: {features: 16}, name: right_tower}
      - {mul: {inputs: [left_tower, right_tower]}}
      - {linear: {features: 2}}
  data:
    train: {digits: {count: 96, pairs: true}}
    validation: {digits: {count: 40, first: 100000, pairs: true}}
  batch_size: 32
  micro_batches: 4
  steps: 6
  metrics: [accuracy]
  optimizer: adam
  learning_rate: 0.01
  checkpoint: never
  threads: 1
)";

}  // namespace

TEST(ModelParts, StagesChangeNoBit) {
  for (const std::string precision : {"fp32", "bf16", "fp16"}) {
    const Outcome whole = run_job(kResidualJob, 1, {"precision=" + precision});
    for (const int parts : {2, 3, 4}) {
      for (const int ranks : {2, 3, 5, 8}) {
        EXPECT_EQ(run_job(kResidualJob, ranks, {"precision=" + precision, "parallel.parts=" + std::to_string(parts)}),
                  whole)
            << precision << ", " << parts << " parts, " << ranks << " ranks";
      }
    }
  }
}

TEST(ModelParts, NorDoThreadsHostsAndHowManyMicroBatchesAreInFlight) {
  const Outcome whole = run_job(kResidualJob, 1, {});
  for (const char* in_flight : {"1", "2", "8"}) {
    for (const char* threads : {"threads=1", "threads=3"}) {
      EXPECT_EQ(run_job(kResidualJob, 4, {"parallel.parts=2", std::string("parallel.in_flight=") + in_flight, threads},
                        {0, 0, 1, 1}),
                whole)
          << in_flight << threads;
    }
  }
}

TEST(ModelParts, NorDoesRecomputationOrLowering) {
  const Outcome whole = run_job(kResidualJob, 1, {});
  for (const char* recompute : {"recompute=cheap", "recompute=blocks"}) {
    EXPECT_EQ(run_job(kResidualJob, 3, {"parallel.parts=2", recompute}), whole) << recompute;
  }
  TrainerOptions plain;
  plain.lowered = false;
  EXPECT_EQ(run_job(kResidualJob, 2, {"parallel.parts=2"}, {}, plain), whole);
}

TEST(ModelParts, WhatIsSentToOtherPartsIsTold) {
  const auto sent = [](const std::string& job, int ranks, const std::vector<std::string>& overrides) {
    Events events;
    TrainerOptions options;
    options.sink = &events;
    (void)run_job(job, ranks, overrides, {}, options);
    const auto end = events.last<events::End>();
    EXPECT_EQ(end.bytes_sent_by_rank, end.bytes_by_formula_by_rank) << ranks << " ranks";
    return end.bytes_sent_by_rank;
  };
  // Forward, 16 numbers of each of 32 samples; backward, their gradients; in 6 steps, and in no evaluation.
  const double activations = 6 * 32 * 16 * 4;
  EXPECT_EQ(sent(kTowers, 2, {"parallel={parts: [{until: left_tower}, {}]}"}),
            (events::ByRank{{0, activations}, {1, activations}}));
  const TextFile file;
  // The gradient of the head's use of the tied weight, and of the first layer's, go the other way.
  const std::string gpt = file.in(kGpt);
  for (const int ranks : {2, 3, 5}) {
    for (const char* sharding : {"none", "optimizer", "parameters"}) {
      const auto bytes =
          sent(gpt, ranks,
               {"parallel.parts=2", std::string("parallel.sharding=") + sharding, "precision=bf16",
                "balance=equal"});  // a rank that is slow by chance would get no micro-batch, and send nothing
      for (const auto& [rank, count] : bytes) EXPECT_GT(count, 0) << rank << " of " << ranks;
      (void)sent(kResidualJob, ranks, {"parallel.parts=2", std::string("parallel.sharding=") + sharding});
    }
  }
}

TEST(ModelParts, BranchesChangeNoBit) {
  const Outcome whole = run_job(kTowers, 1, {});
  EXPECT_EQ(run_job(kTowers, 2, {"parallel.parts.branches=auto"}), whole);
  EXPECT_EQ(run_job(kTowers, 3, {"parallel.parts.branches=auto"}), whole);
  EXPECT_EQ(run_job(kTowers, 3, {"parallel.parts=3"}), whole);
}

TEST(ModelParts, NorDoWeightsThatPartsShare) {
  const TextFile file;
  const std::string job = file.in(kGpt);
  for (const std::string precision : {"fp32", "bf16", "fp16"}) {
    const Outcome whole = run_job(job, 1, {"precision=" + precision});
    for (const int parts : {2, 3}) {
      for (const int ranks : {2, 3, 4, 7}) {
        EXPECT_EQ(run_job(job, ranks, {"precision=" + precision, "parallel.parts=" + std::to_string(parts)}), whole)
            << precision << ", " << parts << " parts, " << ranks << " ranks";
      }
    }
  }
}

TEST(ModelParts, NorDoesAStopAndAStartWithOtherParts) {
  const TextFile file;
  const std::string job = file.in(kGpt);
  std::string directory = (std::filesystem::temp_directory_path() / "lockstep-parts-XXXXXX").string();
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const Outcome whole = run_job(job, 1, {});
  const std::vector<std::pair<int, const char*>> placements = {{3, "parallel.parts=3"}, {1, "parallel.parts=1"},
                                                               {4, "parallel.parts=2"}, {2, "parallel.parts=1"},
                                                               {5, "parallel.parts=3"}, {2, "parallel.parts=2"}};
  Outcome last;
  for (std::size_t i = 0; i < placements.size(); ++i) {
    TrainerOptions options;
    options.stop_at = static_cast<std::int64_t>(i) + 1;
    last = run_job(job, placements[i].first,
                   {placements[i].second, "checkpoint={every: 1 step}", "run_directory=" + directory}, {}, options);
  }
  EXPECT_EQ(last, whole);
  std::filesystem::remove_all(directory);
}

}  // namespace lockstep
