#include "tools/bench/step_time.hpp"

#include <gtest/gtest.h>

#include "seeds.hpp"
#include "step/balance/split.hpp"

namespace lockstep::bench {
namespace {

TEST(StepTime, AllThereAndNoneSlow) {
  EXPECT_EQ(step_time({.devices = 7, .active = 7, .micro_batches_a_device = 3}), 1);
}

TEST(StepTime, OneOfFourHalfAsFast) {
  StepLoad load{.devices = 4, .active = 4, .slow = 1, .slow_factor = 2, .balanced = false};
  EXPECT_EQ(step_time(load), 2) << "all wait for it";
  load.balanced = true;
  EXPECT_DOUBLE_EQ(step_time(load), 4 / 3.5) << "three and a half devices";
}

TEST(StepTime, SpeedsOneAndAHalfGainAHalf) {
  // The bound of balancing, sum of speeds over count times the slowest speed: 1.5 for speeds 1 and 0.5.
  StepLoad load{.devices = 2, .active = 2, .slow = 1, .slow_factor = 2, .balanced = false};
  const double unbalanced = step_time(load);
  load.balanced = true;
  EXPECT_DOUBLE_EQ(unbalanced / step_time(load), 1.5);
}

TEST(StepTime, NoMicroBatchIsDivided) {
  // 16 micro-batches: in the time of 4 micro-batches the slow device does 2, so some fast device has to do 5 of the
  // other 14.
  StepLoad load{.devices = 4, .active = 4, .slow = 1, .slow_factor = 2, .micro_batches_a_device = 4};
  EXPECT_EQ(step_time(load), 5.0 / 4);
  load.micro_batches_a_device = 1;
  EXPECT_EQ(step_time(load), 2) << "a micro-batch on the slow one, or two on another";
  load.micro_batches_a_device = 7;
  EXPECT_EQ(step_time(load), 8.0 / 7) << "3 * 8 + 4 = 28";
}

TEST(StepTime, MissingDevices) {
  StepLoad load{.devices = 8, .active = 7, .micro_batches_a_device = 4};
  EXPECT_EQ(step_time(load), 5.0 / 4) << "32 micro-batches on 7 devices";
  load.balanced = false;
  EXPECT_EQ(step_time(load), 5.0 / 4);
  load.micro_batches_a_device = 0;
  EXPECT_DOUBLE_EQ(step_time(load), 8.0 / 7);
}

TEST(StepTime, AllSlow) {
  StepLoad load{.devices = 4, .active = 4, .slow = 4, .slow_factor = 1.5, .micro_batches_a_device = 8};
  EXPECT_DOUBLE_EQ(step_time(load), 1.5);
  load.micro_batches_a_device = 0;
  EXPECT_DOUBLE_EQ(step_time(load), 1.5);
}

// The balancer's own split of the same micro-batches on devices of the same speeds.
TEST(StepTime, IsThatOfTheBestSplit) {
  for (const unsigned seed : seeds(200)) {
    SCOPED_TRACE(rerun(seed, "plan_test"));
    std::mt19937 random(seed);
    StepLoad load{.devices = between(random, 1, 12), .micro_batches_a_device = between(random, 1, 9)};
    load.active = between(random, 1, load.devices);
    load.slow = between(random, 0, load.active);
    load.slow_factor = 1 + between(random, 1, 40) / 10.0;
    const int micro_batches = load.devices * load.micro_batches_a_device;
    std::vector<balance::RankCost> ranks(static_cast<std::size_t>(load.active));
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      ranks[rank].seconds_per_micro_batch =
          (static_cast<int>(rank) < load.slow ? load.slow_factor : 1) / load.micro_batches_a_device;
      ranks[rank].max_micro_batches = micro_batches;
    }
    const auto counts = balance::best_split_without_reduce(ranks, micro_batches);
    double longest = 0;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      longest = std::max(longest, counts[rank] * ranks[rank].seconds_per_micro_batch);
    EXPECT_NEAR(step_time(load), longest, 1e-9);
  }
}

}  // namespace
}  // namespace lockstep::bench
