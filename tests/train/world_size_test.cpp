// The promise: the number of ranks and threads changes no bit.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "train/outcome_of_ranks.hpp"

namespace lockstep {

namespace {

Outcome run_world(int ranks, const std::vector<std::string>& overrides, const TrainerOptions& options = {},
                  std::vector<int> hosts = {}) {
  return run_job(kResidualJob, ranks, overrides, std::move(hosts), options);
}

std::string temporary_directory() {
  std::string path = (std::filesystem::temp_directory_path() / "lockstep-bits-XXXXXX").string();
  EXPECT_NE(mkdtemp(path.data()), nullptr);
  return path;
}

}  // namespace

TEST(WorldSize, RanksThreadsAndLoweringChangeNoBit) {
  const Outcome alone = run_world(1, {"threads=1"});
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
    const Outcome kept = run_world(1, {precision});
    for (const char* recompute : {"recompute=cheap", "recompute=blocks"}) {
      for (const int ranks : {1, 3}) {
        EXPECT_EQ(run_world(ranks, {precision, recompute}), kept) << ranks << precision << recompute;
      }
    }
  }
}

TEST(WorldSize, NorDoesThatOfAModelsOwnBlocks) {
  const Outcome kept = run_world(1, {"model.resnet=20", "steps=2"});
  EXPECT_EQ(run_world(2, {"model.resnet=20", "steps=2", "recompute=blocks"}), kept);
}

TEST(WorldSize, NorDoTheyInMixedPrecision) {
  for (const std::string precision : {"precision=bf16", "precision=fp16"}) {
    const Outcome alone = run_world(1, {precision});
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
  const Outcome alone = run_world(1, {});
  EXPECT_EQ(run_world(4, {}, {}, {0, 0, 1, 1}), alone);
  EXPECT_EQ(run_world(3, {}, {}, {0, 1, 2}), alone);
  EXPECT_EQ(run_world(2, {"bucket_bytes=1000000"}), alone);
}

// Controls: a test that cannot fail proves nothing.
TEST(WorldSize, AllReduceAndAnotherTreeChangeBits) {
  const Outcome exact = run_world(1, {});
  EXPECT_NE(run_world(3, {"exact=never"}).parameters, exact.parameters);
  EXPECT_NE(run_world(5, {"exact=never"}).parameters, exact.parameters);
  EXPECT_NE(run_world(1, {"micro_batches=16"}).parameters, exact.parameters);
  EXPECT_NE(run_world(1, {"seed=4"}).parameters, exact.parameters);
}

TEST(WorldSize, ResumeAtAnotherSizeChangesNoBit) {
  const Outcome unbroken = run_world(1, {});
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
