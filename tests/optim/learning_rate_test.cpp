#include "step/optim/learning_rate.hpp"

#include <gtest/gtest.h>

#include "step/optim/registry.hpp"

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

TEST_F(ScheduleTest, ExponentialFallsAllAlongOrInStairs) {
  options.peak = 1;
  options.warmup = {2, false};
  options.schedule = {"exponential", Attributes({{"factor", 0.25}})};  // every epoch
  EXPECT_DOUBLE_EQ(rate_of(64, 20, 4).at(2), 1);
  EXPECT_DOUBLE_EQ(rate_of(64, 20, 4).at(4), 0.5);
  EXPECT_DOUBLE_EQ(rate_of(64, 20, 4).at(6), 0.25);
  options.schedule.attributes.set("staircase", true);
  options.schedule.attributes.set("every", Span{3, false});
  EXPECT_DOUBLE_EQ(rate_of(64, 20, 4).at(4), 1);
  EXPECT_DOUBLE_EQ(rate_of(64, 20, 4).at(5), 0.25);
  options.schedule.attributes.set("every", Span{0.01, true});  // rounded to no step: each step is a period
  EXPECT_DOUBLE_EQ(rate_of(64, 20, 4).at(4), 0.0625);
}

TEST_F(ScheduleTest, PolynomialOfPower2) {
  options.peak = 1.1;
  options.schedule = {"polynomial", Attributes({{"power", 2.0}, {"final", 0.1}})};
  EXPECT_DOUBLE_EQ(rate_of(64, 10, 5).at(0), 1.1);
  EXPECT_DOUBLE_EQ(rate_of(64, 10, 5).at(5), 0.35);
  EXPECT_DOUBLE_EQ(rate_of(64, 10, 5).at(10), 0.1);
}

TEST_F(ScheduleTest, OneCycleRisesToThePeakAndEndsFarBelowItsBeginning) {
  options.peak = 1;
  options.schedule = {"one_cycle", Attributes({{"rise", 0.25}, {"start_divisor", 10.0}, {"final_divisor", 100.0}})};
  const LearningRate rate = rate_of(64, 20, 5);
  EXPECT_DOUBLE_EQ(rate.at(0), 0.1);
  EXPECT_DOUBLE_EQ(rate.at(2), 0.55);  // in the middle of steps 0 to 4
  EXPECT_DOUBLE_EQ(rate.at(4), 1);
  EXPECT_NEAR(rate.at(19), 0.001, 1e-15);
  options.schedule.attributes.set("anneal", std::string("linear"));
  EXPECT_DOUBLE_EQ(rate_of(64, 20, 5).at(1), 0.325);
  EXPECT_NEAR(rate_of(64, 20, 5).at(9), 1 - 0.999 / 3, 1e-15);
}

// The peak would lie before the first step, which is on the way down then.
TEST_F(ScheduleTest, OneCycleWithoutARise) {
  options.peak = 1;
  options.schedule = {"one_cycle", Attributes({{"rise", 0.3}, {"anneal", std::string("linear")}})};
  EXPECT_NEAR(rate_of(64, 1, 1).at(0), 4e-6, 1e-15);
  EXPECT_NEAR(rate_of(64, 2, 1).at(0), 1 - (1 - 4e-6) * 0.4 / 1.4, 1e-15);
  EXPECT_NEAR(rate_of(64, 2, 1).at(1), 4e-6, 1e-15);
  options.schedule.attributes.set("rise", 0.0);
  EXPECT_NEAR(rate_of(64, 20, 5).at(0), 1 - (1 - 4e-6) / 20, 1e-15);
}

TEST_F(ScheduleTest, CosineRestartsAtThePeak) {
  options.peak = 1;
  options.warmup = {1, false};
  options.schedule = {"cosine_restarts", Attributes({{"first", Span{1, true}}, {"final", 0.5}})};
  const LearningRate alike = rate_of(64, 40, 4);
  for (const int begin : {1, 5, 9, 37}) {
    EXPECT_DOUBLE_EQ(alike.at(begin), 1);
    EXPECT_DOUBLE_EQ(alike.at(begin + 2), 0.75);
  }
  options.schedule.attributes.set("growth", 2.0);
  const LearningRate growing = rate_of(64, 40, 4);
  for (const int begin : {1, 5, 13, 29}) EXPECT_DOUBLE_EQ(growing.at(begin), 1);
  EXPECT_DOUBLE_EQ(growing.at(9), 0.75);
}

TEST_F(ScheduleTest, WsdStaysAtThePeakUntilItsDecay) {
  options.peak = 1;
  options.warmup = {4, false};
  options.schedule = {"wsd", Attributes({{"decay", 0.25}, {"final", 0.2}})};
  EXPECT_DOUBLE_EQ(rate_of(64, 20, 5).at(4), 1);
  EXPECT_DOUBLE_EQ(rate_of(64, 20, 5).at(16), 1);
  EXPECT_DOUBLE_EQ(rate_of(64, 20, 5).at(17), 0.8);
  EXPECT_DOUBLE_EQ(rate_of(64, 20, 5).at(18), 0.6);
  options.schedule.attributes.set("form", std::string("sqrt"));
  EXPECT_DOUBLE_EQ(rate_of(64, 20, 5).at(17), 0.6);
  options.schedule.attributes.set("form", std::string("cosine"));
  EXPECT_DOUBLE_EQ(rate_of(64, 20, 5).at(18), 0.6);
  EXPECT_NEAR(rate_of(64, 20, 5).at(20), 0.2, 1e-15);
}

TEST_F(ScheduleTest, LinearScalingRule) {
  options.peak = 0.1;
  options.reference_batch = 64;
  EXPECT_DOUBLE_EQ(rate_of(256, 10, 5).at(3), 0.4);
}

namespace {

/// The rate of a step far behind the warm-up after each of these evaluations: "+" is an improvement, "-" none.
std::vector<double> rates_after(const LearningRate& rate, const std::string& evaluations) {
  std::vector<double> rates;
  ScheduleMemory memory;
  for (const char evaluation : evaluations) {
    rate.evaluated(evaluation == '+', memory);
    rates.push_back(rate.at(1000, memory));
  }
  return rates;
}

}  // namespace

TEST_F(ScheduleTest, PlateauFallsWhenEvaluationsGetNoBetter) {
  options.peak = 1;
  options.schedule = {"plateau", Attributes({{"factor", 0.5}, {"patience", std::int64_t{2}}})};
  using Rates = std::vector<double>;
  EXPECT_EQ(rates_after(rate_of(64, 20, 5), "+-+--"), (Rates{1, 1, 1, 1, 0.5}));
  EXPECT_EQ(rates_after(rate_of(64, 20, 5), "-----"), (Rates{1, 0.5, 0.5, 0.25, 0.25}));
  options.schedule.attributes.set("min_rate", 0.4);
  EXPECT_EQ(rates_after(rate_of(64, 20, 5), "------"), (Rates{1, 0.5, 0.5, 0.4, 0.4, 0.4}));
  options.schedule.attributes.set("cooldown", std::int64_t{2});
  EXPECT_EQ(rates_after(rate_of(64, 20, 5), "-------"), (Rates{1, 0.5, 0.5, 0.5, 0.5, 0.4, 0.4}));
  EXPECT_EQ(rates_after(rate_of(64, 20, 5), "--+--+-"), (Rates{1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}));
}

TEST_F(ScheduleTest, PlateauFollowsNoEvaluationOfTheWarmUp) {
  options.peak = 1;
  options.warmup = {4, false};
  options.schedule = {"plateau", {}};
  const LearningRate rate = rate_of(64, 20, 5);
  EXPECT_FALSE(rate.follows_evaluation(3));
  EXPECT_TRUE(rate.follows_evaluation(4));
  EXPECT_EQ(rate.metric(), "loss");
  EXPECT_EQ(rate.min_delta(), 0.0001);
  EXPECT_DOUBLE_EQ(rate.at(0, {.falls = 3}), 0.25);
  EXPECT_DOUBLE_EQ(rate.at(4, {.falls = 3}), 0.001);
  options.schedule = {"cosine", {}};
  EXPECT_FALSE(rate_of(64, 20, 5).follows_evaluation(20));
}

}  // namespace lockstep::optim
