// The gradient noise scale, of gradients whose noise is known.
#include "tools/tune/batch.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace lockstep::tune {
namespace {

constexpr std::size_t kSize = 64;
constexpr double kGradient = 0.5;  // each element of the true gradient
constexpr double kDeviation = 3;   // of an element of one sample's gradient

GradientNorms norms(double samples, int count, std::mt19937& random) {
  std::normal_distribution<double> element(kGradient, kDeviation / std::sqrt(samples));
  GradientNorms norms{.samples = samples, .norms = {}};
  for (int i = 0; i < count; ++i) {
    double squares = 0;
    for (std::size_t e = 0; e < kSize; ++e) squares += std::pow(element(random), 2);
    norms.norms.push_back(std::sqrt(squares));
  }
  return norms;
}

TEST(GradientNoise, IsEstimatedFromTwoSizes) {
  std::mt19937 random(7);
  const NoiseScale scale = noise_scale(norms(4, 4000, random), norms(64, 4000, random));
  EXPECT_NEAR(scale.gradient_squared, kSize * kGradient * kGradient, 0.5);
  EXPECT_NEAR(scale.variance, kSize * kDeviation * kDeviation, 10);
  ASSERT_TRUE(scale.samples.has_value());
  EXPECT_NEAR(*scale.samples, kDeviation * kDeviation / (kGradient * kGradient), 1.5);
}

TEST(GradientNoise, IsUnknownIfItHidesTheGradient) {
  const NoiseScale scale = noise_scale({.samples = 1, .norms = {4}}, {.samples = 16, .norms = {0.9}});
  EXPECT_LT(scale.gradient_squared, 0);
  EXPECT_FALSE(scale.samples.has_value());
}

TEST(GradientNoise, ABatchAsLargeAsItCostsTwiceTheLeast) {
  EXPECT_DOUBLE_EQ(steps_factor(100, 100), 2);
  EXPECT_DOUBLE_EQ(samples_factor(100, 100), 2);
  EXPECT_DOUBLE_EQ(steps_factor(400, 100), 1.25);
  EXPECT_DOUBLE_EQ(samples_factor(25, 100), 1.25);
}

}  // namespace
}  // namespace lockstep::tune
