#include "optim/learning_rate.hpp"

#include <gtest/gtest.h>

#include "optim/registry.hpp"

namespace lockstep::optim {

namespace {

struct ScheduleTest : testing::Test {
  ScheduleTest() { add_built_in(schedules); }
  LearningRate rate_of(std::int64_t batch_size, std::int64_t steps, std::int64_t steps_per_epoch) const {
    return {options, schedules, batch_size, steps, steps_per_epoch};
  }
  ScheduleRegistry schedules;
  LearningRateOptions options;
};

}  // namespace

TEST_F(ScheduleTest, WarmUpReachesThePeakAtItsLastStep) {
  options.peak = 0.1;
  options.warmup = {10, false};
  const LearningRate rate = rate_of(64, 100, 50);
  EXPECT_DOUBLE_EQ(rate.at(0), 0.01);
  EXPECT_DOUBLE_EQ(rate.at(9), 0.1);
  EXPECT_DOUBLE_EQ(rate.at(99), 0.1);
}

TEST_F(ScheduleTest, CosineFallsFromPeakToFinal) {
  options.peak = 1e-3;
  options.schedule = {"cosine", Attributes({{"final", 1e-4}})};
  options.warmup = {1, true};  // one epoch of 20 steps
  const LearningRate rate = rate_of(64, 120, 20);
  EXPECT_DOUBLE_EQ(rate.at(19), 1e-3);
  EXPECT_DOUBLE_EQ(rate.at(20), 1e-3);
  EXPECT_NEAR(rate.at(70), 5.5e-4, 1e-12);
  EXPECT_NEAR(rate.at(120), 1e-4, 1e-12);
}

TEST_F(ScheduleTest, LinearAndSteps) {
  options.peak = 1;
  options.schedule = {"linear", {}};
  EXPECT_DOUBLE_EQ(rate_of(64, 10, 5).at(5), 0.5);
  options.schedule = {"steps",
                      Attributes({{"milestones", std::vector<Span>{{2, true}, {15, false}}}, {"factor", 0.5}})};
  const LearningRate rate = rate_of(64, 20, 5);
  EXPECT_DOUBLE_EQ(rate.at(9), 1);
  EXPECT_DOUBLE_EQ(rate.at(10), 0.5);
  EXPECT_DOUBLE_EQ(rate.at(15), 0.25);
}

TEST_F(ScheduleTest, LinearScalingRule) {
  options.peak = 0.1;
  options.reference_batch = 64;
  EXPECT_DOUBLE_EQ(rate_of(256, 10, 5).at(3), 0.4);
}

}  // namespace lockstep::optim
