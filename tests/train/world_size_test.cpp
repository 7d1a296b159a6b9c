// The promise: the number of ranks and threads changes no bit. A residual net with batch norm, dropout,
// augmentation, clipping and AdamW, on ranks that are threads of this process.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>

#include "config/config.hpp"
#include "lockstep/trainer.hpp"
#include "train/catalogue.hpp"

namespace lockstep {

namespace {

constexpr const char* kJob = R"(
job:
  name: bits
  seed: 3
  model:
    layers:
      - {conv: {filters: 8, kernel: 3, bias: false}, name: stem}
      - batch_norm
      - {relu: {}, name: start}
      - {conv: {filters: 8, kernel: 3, bias: false}, block: residual}
      - {batch_norm: {}, block: residual}
      - {add: {inputs: [previous, start]}, block: residual}
      - {relu: {}, block: residual}
      - {max_pool: {kernel: 2}, block: head}
      - {flatten: {}, block: head}
      - {dropout: 0.2, block: head}
      - {linear: {features: 10}}
  data:
    train: {digits: {count: 160}}
    validation: {digits: {count: 50, first: 100000}}
    augment: [{crop: {padding: 2}}]
  batch_size: 32
  shards: 8
  steps: 7
  metrics: [accuracy]
  optimizer: {adamw: {weight_decay: 0.01}}
  learning_rate: {peak: 0.01, warmup: 2 steps, schedule: {cosine: {final: 0}}}
  clip_norm: 0.5
  evaluate: {every: 4 steps}
  checkpoint: never
  bucket_bytes: 8192
)";

struct WorldOutcome {
  std::string parameters;
  std::map<std::string, double> metrics;
  bool operator==(const WorldOutcome&) const = default;
};

WorldOutcome run_world(int ranks, const std::vector<std::string>& overrides, TrainerOptions options = {},
                       std::vector<int> hosts = {}) {
  const Registries registries = Registries::built_in();
  const JobFile job = config::load_text(kJob, "job.yaml", overrides, train::catalogue_of(registries), false);
  std::mutex mutex;
  std::vector<WorldOutcome> outcomes;
  run_in_threads(
      ranks,
      [&](Communicator& communicator) {
        const TrainResult result = train_job(job, communicator, registries, options);
        const std::lock_guard lock(mutex);
        outcomes.push_back({result.parameters_sha256, result.metrics});
      },
      std::move(hosts));
  for (const auto& outcome : outcomes) EXPECT_EQ(outcome, outcomes.front()) << "ranks disagree";
  return outcomes.front();
}

std::string temporary_directory() {
  std::string path = (std::filesystem::temp_directory_path() / "lockstep-bits-XXXXXX").string();
  EXPECT_NE(mkdtemp(path.data()), nullptr);
  return path;
}

}  // namespace

TEST(WorldSize, RanksThreadsAndLoweringChangeNoBit) {
  const WorldOutcome alone = run_world(1, {"threads=1"});
  EXPECT_EQ(alone.metrics.size(), 2u);
  for (const bool lowered : {true, false}) {
    for (const int ranks : {1, 2, 3, 5, 8}) {
      for (const int threads : {1, 2}) {
        TrainerOptions options;
        options.lowered = lowered;
        EXPECT_EQ(run_world(ranks, {"threads=" + std::to_string(threads)}, options), alone)
            << ranks << " ranks, " << threads << " threads, lowered " << lowered;
      }
    }
  }
}

TEST(WorldSize, RecomputationChangesNoBit) {
  for (const char* precision : {"precision=fp32", "precision=bf16"}) {
    const WorldOutcome kept = run_world(1, {precision});
    for (const char* recompute : {"recompute=cheap", "recompute=blocks"}) {
      for (const int ranks : {1, 3}) {
        EXPECT_EQ(run_world(ranks, {precision, recompute}), kept) << ranks << precision << recompute;
      }
    }
  }
}

TEST(WorldSize, NorDoesThatOfAModelsOwnBlocks) {
  const WorldOutcome kept = run_world(1, {"model.resnet=20", "steps=2"});
  EXPECT_EQ(run_world(2, {"model.resnet=20", "steps=2", "recompute=blocks"}), kept);
}

TEST(WorldSize, NorDoTheyInMixedPrecision) {
  for (const std::string precision : {"precision=bf16", "precision=fp16"}) {
    const WorldOutcome alone = run_world(1, {precision});
    EXPECT_NE(alone.parameters, run_world(1, {}).parameters);
    for (const bool lowered : {true, false}) {
      for (const int ranks : {2, 3, 8}) {
        TrainerOptions options;
        options.lowered = lowered;
        EXPECT_EQ(run_world(ranks, {precision, "threads=2"}, options), alone)
            << precision << ", " << ranks << " ranks, lowered " << lowered;
      }
    }
  }
}

TEST(WorldSize, HostsAndBucketsChangeNoBit) {
  const WorldOutcome alone = run_world(1, {});
  EXPECT_EQ(run_world(4, {}, {}, {0, 0, 1, 1}), alone);
  EXPECT_EQ(run_world(3, {}, {}, {0, 1, 2}), alone);
  EXPECT_EQ(run_world(2, {"bucket_bytes=1000000"}), alone);
}

// Controls: a test that cannot fail proves nothing.
TEST(WorldSize, AllReduceAndAnotherTreeChangeBits) {
  const WorldOutcome exact = run_world(1, {});
  EXPECT_NE(run_world(3, {"exact=never"}).parameters, exact.parameters);
  EXPECT_NE(run_world(5, {"exact=never"}).parameters, exact.parameters);
  EXPECT_NE(run_world(1, {"shards=16"}).parameters, exact.parameters);
  EXPECT_NE(run_world(1, {"seed=4"}).parameters, exact.parameters);
}

TEST(WorldSize, ResumeAtAnotherSizeChangesNoBit) {
  const WorldOutcome unbroken = run_world(1, {});
  for (const auto& [before, after] : {std::pair{1, 3}, {5, 2}}) {
    const std::string directory = temporary_directory();
    const std::vector<std::string> overrides = {"run_directory=" + directory, "checkpoint={every: 2 steps}"};
    TrainerOptions options;
    options.stop_at = 3;
    EXPECT_NE(run_world(before, overrides, options).parameters, unbroken.parameters);
    EXPECT_EQ(run_world(after, overrides), unbroken);
    std::filesystem::remove_all(directory);
  }
}

}  // namespace lockstep
