// How much of a sweep's result a parameter explains.
#include "tools/sweep/importance.hpp"

#include <gtest/gtest.h>

#include <random>

namespace lockstep::sweep {
namespace {

TEST(Importance, OfAParameterThatDecidesAlone) {
  const auto found = explained_variance({0, 0, 0, 1, 1, 1}, {1, 1, 1, 5, 5, 5});
  ASSERT_TRUE(found.has_value());
  EXPECT_DOUBLE_EQ(*found, 1);
}

TEST(Importance, OfNoiseIsNearNothing) {
  std::mt19937 random(3);
  std::vector<double> values, numbers;
  for (int i = 0; i < 400; ++i) {
    values.push_back(static_cast<double>(random()));
    numbers.push_back(static_cast<double>(random()));
  }
  const auto found = explained_variance(groups_of_numbers(numbers), values);
  ASSERT_TRUE(found.has_value());
  EXPECT_LT(*found, 0.02);
}

TEST(Importance, GoesByRankSoThatOneWildTrialChangesLittle) {
  const std::vector<int> group = {0, 0, 0, 0, 1, 1, 1, 1};
  const auto quiet = explained_variance(group, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto wild = explained_variance(group, {1, 2, 3, 4, 5, 6, 7, 1e9});
  ASSERT_TRUE(quiet.has_value());
  EXPECT_EQ(*quiet, *wild);
  // Sums of squares of the ranks: 42 in all, 5 within each group; 10 / 6 is noise.
  EXPECT_DOUBLE_EQ(*quiet, (42.0 - 10 - 10.0 / 6) / 42);
}

TEST(Importance, LeavesOutTrialsWithoutTheParameter) {
  const auto found = explained_variance({0, -1, 0, 1, -1, 1}, {1, 100, 2, 3, 0, 4});
  ASSERT_TRUE(found.has_value());
  EXPECT_DOUBLE_EQ(*found, (5.0 - 1 - 0.5) / 5);
}

TEST(Importance, IsUnknownOfOneGroupOrOneTrialEach) {
  EXPECT_FALSE(explained_variance({0, 0, 0}, {1, 2, 3}).has_value());
  EXPECT_FALSE(explained_variance({0, 1, 2}, {1, 2, 3}).has_value());
  EXPECT_FALSE(explained_variance({}, {}).has_value());
  EXPECT_EQ(explained_variance({0, 0, 1, 1}, {2, 2, 2, 2}), 0);
}

TEST(Importance, NumbersAreGroupedByOrder) {
  EXPECT_EQ(groups_of_numbers({5, 1, 4, 2, 8, 7, 6, 3}), (std::vector<int>{1, 0, 0, 0, 1, 1, 1, 0}));
  EXPECT_EQ(groups_of_numbers({1, 1, 1, 1, 1, 1, 2, 2}), (std::vector<int>{0, 0, 0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(groups_of_numbers({2, 1}), (std::vector<int>{0, 0}));
}

}  // namespace
}  // namespace lockstep::sweep
