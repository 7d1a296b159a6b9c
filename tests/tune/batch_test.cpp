// Which batch sizes are tried, in how many micro-batches, up to which memory, and which one is recommended.
#include "tools/tune/batch.hpp"

#include <gtest/gtest.h>

namespace lockstep::tune {
namespace {

using Numbers = std::vector<std::int64_t>;

BatchSetup setup_of(std::int64_t batch, std::int64_t micro_batches, int ranks) {
  BatchSetup setup{.probes = {.job = "", .overrides = {}, .ranks = ranks, .directory = ""}, .batch = batch};
  setup.micro_batches = micro_batches;
  setup.smallest = batch / 8;
  setup.largest = batch * 8;
  return setup;
}

TEST(Batch, SizesDoubleByWayOfTheJobs) {
  EXPECT_EQ(batch_sizes(setup_of(64, 8, 1)), (Numbers{8, 16, 32, 64, 128, 256, 512}));
  EXPECT_EQ(batch_sizes(setup_of(96, 8, 1)), (Numbers{12, 24, 48, 96, 192, 384, 768}));
  EXPECT_EQ(batch_sizes(setup_of(15, 3, 1)), (Numbers{15, 30, 60, 120}));
}

TEST(Batch, MicroBatchesKeepTheirSizeButEachRankHasOne) {
  const BatchSetup setup = setup_of(64, 8, 3);
  EXPECT_EQ(micro_batches_for(setup, 64), 8);
  EXPECT_EQ(micro_batches_for(setup, 128), 16);
  EXPECT_EQ(micro_batches_for(setup, 16), 4);  // two of eight would leave a rank without; three do not divide it
  EXPECT_EQ(micro_batches_for(setup, 3), 3);
}

BatchRow row(std::int64_t batch, double seconds, std::int64_t memory = 0) {
  BatchRow row{.batch = batch, .micro_batches = 1, .step_seconds = seconds};
  row.samples_per_second = static_cast<double>(batch) / seconds;
  row.peak_memory = memory;
  return row;
}

TEST(Batch, MemoryGrowsAsBetweenTheLastTwo) {
  EXPECT_EQ(predicted_memory({row(8, 1, 100)}, 16), 0);
  EXPECT_EQ(predicted_memory({row(8, 1, 100), row(16, 1, 180)}, 32), 340);
  EXPECT_EQ(predicted_memory({row(8, 1, 100), row(16, 1, 90)}, 32), 90);
  EXPECT_EQ(predicted_memory({row(8, 1), row(16, 1)}, 32), 0);
}

TEST(Batch, WithoutNoiseTheSmallestOfTheFastest) {
  std::vector<BatchRow> rows = {row(8, 0.010), row(16, 0.015), row(32, 0.0295), row(64, 0.059)};
  EXPECT_EQ(rank_sizes(rows, std::nullopt), 1);
  EXPECT_FALSE(rows[1].time.has_value());
}

TEST(Batch, WithNoiseTheShortestTimeToALoss) {
  // Steps are 1 + 100 / batch times the least: 5, 3, 2, 1.5.
  std::vector<BatchRow> rows = {row(25, 0.010), row(50, 0.012), row(100, 0.016), row(200, 0.032)};
  EXPECT_EQ(rank_sizes(rows, 100), 2);
  EXPECT_DOUBLE_EQ(*rows[2].time, 1);
  EXPECT_NEAR(*rows[0].time, 0.050 / 0.032, 1e-9);
  EXPECT_NEAR(*rows[3].time, 0.048 / 0.032, 1e-9);
}

TEST(Batch, ASizeThatFailedIsNotRecommended) {
  std::vector<BatchRow> rows = {row(8, 0.010), row(16, 0.001)};
  rows[1].failure = "no memory";
  EXPECT_EQ(rank_sizes(rows, std::nullopt), 0);
  rows[0].failure = "no memory";
  EXPECT_EQ(rank_sizes(rows, std::nullopt), -1);
}

TEST(Comparison, TheFirstOfThoseWithinTheNoise) {
  EXPECT_EQ(first_of_fastest({}), -1);
  EXPECT_EQ(first_of_fastest({0, 0}), -1);
  EXPECT_EQ(first_of_fastest({50, 98, 100, 99}), 1);
}

TEST(Comparison, ThreadsDoubleUpToTheCores) {
  std::vector<std::string> names;
  for (const Candidate& candidate : thread_candidates(6)) names.push_back(candidate.name);
  EXPECT_EQ(names, (std::vector<std::string>{"threads=1", "threads=2", "threads=4", "threads=6"}));
  EXPECT_EQ(thread_candidates(1).size(), 1U);
}

}  // namespace
}  // namespace lockstep::tune
