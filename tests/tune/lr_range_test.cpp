// The learning-rate range test: which rates, and what it says of losses whose course is known.
#include "tools/tune/lr_range.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lockstep::tune {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(LrRange, RatesRiseByOneFactor) {
  const std::vector<double> rates = rates_of({.from = 1e-4, .to = 1, .steps = 5});
  ASSERT_EQ(rates.size(), 5U);
  const std::vector<double> expected = {1e-4, 1e-3, 1e-2, 1e-1, 1};
  for (std::size_t i = 0; i < rates.size(); ++i) EXPECT_NEAR(rates[i], expected[i], 1e-12);
}

TEST(LrRange, OverridesAreAnExponentialSchedule) {
  EXPECT_EQ(
      overrides_of({.from = 0.25, .to = 4, .steps = 3}),
      std::vector<std::string>{"learning_rate={peak: 0.25, schedule: {exponential: {factor: 4, every: 1 step}}}"});
}

/// Flat, then a fall around the rate `middle`, then an explosion.
std::vector<double> course(const LrRange& range, double middle, double explodes) {
  std::vector<double> losses;
  for (const double rate : rates_of(range)) {
    const double fallen = 1 / (1 + std::pow(rate / middle, -2));
    losses.push_back(2.3 - 2 * fallen + std::pow(rate / explodes, 4));
  }
  return losses;
}

TEST(LrRange, FindsWhereTheLossFallsFastest) {
  const LrRange range{.from = 1e-5, .to = 10, .steps = 200};
  const LrVerdict verdict = judge(range, course(range, 1e-2, 1));
  ASSERT_TRUE(verdict.steepest.has_value());
  ASSERT_TRUE(verdict.lowest.has_value());
  // Smoothing is late by about nine steps, a factor of 1.9.
  EXPECT_GT(*verdict.steepest, 0.5e-2);
  EXPECT_LT(*verdict.steepest, 4e-2);
  EXPECT_GT(*verdict.lowest, *verdict.steepest);
  EXPECT_TRUE(verdict.diverged);
}

TEST(LrRange, EndsAtTheFirstLossThatIsNoNumber) {
  const LrVerdict verdict = judge({.from = 1e-3, .to = 1, .steps = 6}, {2.0, 1.9, 1.8, kNan, 1.0, 1.0});
  EXPECT_EQ(verdict.points.size(), 3U);
  EXPECT_TRUE(verdict.diverged);
  ASSERT_TRUE(verdict.lowest.has_value());
}

TEST(LrRange, SaysNothingOfALossThatNeverFalls) {
  const LrVerdict verdict = judge({.from = 1e-3, .to = 1, .steps = 5}, {1.0, 1.1, 1.2, 1.3, 1.4});
  EXPECT_FALSE(verdict.lowest.has_value());
  EXPECT_FALSE(verdict.steepest.has_value());
  EXPECT_FALSE(verdict.diverged);
}

}  // namespace
}  // namespace lockstep::tune
