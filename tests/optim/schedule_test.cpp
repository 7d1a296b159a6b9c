#include "optim/schedule.hpp"

#include <gtest/gtest.h>

namespace lockstep::optim {

TEST(Schedule, WarmUpReachesThePeakAtItsLastStep) {
  LearningRateOptions options;
  options.peak = 0.1;
  options.warmup = {10, false};
  const Schedule schedule(options, 64, 100, 50);
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.01);
  EXPECT_DOUBLE_EQ(schedule.at(9), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(99), 0.1);
}

TEST(Schedule, CosineFallsFromPeakToFinal) {
  LearningRateOptions options;
  options.peak = 1e-3;
  options.final = 1e-4;
  options.schedule = "cosine";
  options.warmup = {1, true};  // one epoch of 20 steps
  const Schedule schedule(options, 64, 120, 20);
  EXPECT_DOUBLE_EQ(schedule.at(19), 1e-3);
  EXPECT_DOUBLE_EQ(schedule.at(20), 1e-3);
  EXPECT_NEAR(schedule.at(70), 5.5e-4, 1e-12);
  EXPECT_NEAR(schedule.at(120), 1e-4, 1e-12);
}

TEST(Schedule, LinearAndSteps) {
  LearningRateOptions options;
  options.peak = 1;
  options.schedule = "linear";
  EXPECT_DOUBLE_EQ(Schedule(options, 64, 10, 5).at(5), 0.5);
  options.schedule = "steps";
  options.milestones = {{2, true}, {15, false}};
  options.factor = 0.5;
  const Schedule schedule(options, 64, 20, 5);
  EXPECT_DOUBLE_EQ(schedule.at(9), 1);
  EXPECT_DOUBLE_EQ(schedule.at(10), 0.5);
  EXPECT_DOUBLE_EQ(schedule.at(15), 0.25);
}

TEST(Schedule, LinearScalingRule) {
  LearningRateOptions options;
  options.peak = 0.1;
  options.reference_batch = 64;
  EXPECT_DOUBLE_EQ(Schedule(options, 256, 10, 5).at(3), 0.4);
}

}  // namespace lockstep::optim
