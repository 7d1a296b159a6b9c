// Values of parameters: what can be drawn, how often, and that nothing else changes them.
#include "tools/sweep/space.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "sweep/sweeps.hpp"

namespace lockstep::sweep {
namespace {

TEST(Space, ValuesLieWithinTheirDistribution) {
  SweepParameter steps = range("a", Distribution::integers, 16, 64);
  steps.step = 16;
  EXPECT_EQ(value_at(steps, 0), "16");
  EXPECT_EQ(value_at(steps, 0.999999), "64");
  EXPECT_EQ(value_at(range("a", Distribution::uniform, -1, 1), 0.5), "0");
  EXPECT_EQ(value_at(range("a", Distribution::log_uniform, 1e-4, 1e-2), 0.5), "0.001");
  EXPECT_EQ(value_at(choice("a", {"1", "true"}), 0.5), "true");
}

TEST(Space, QuantilesAreTheInverse) {
  const SweepParameter rate = range("a", Distribution::log_uniform, 1e-4, 1e-2);
  EXPECT_NEAR(*quantile_of(rate, value_at(rate, 0.3)), 0.3, 1e-5);
  EXPECT_NEAR(*quantile_of(choice("a", {"1", "2"}), "2"), 0.75, 1e-12);
  EXPECT_FALSE(quantile_of(choice("a", {"1", "2"}), "3"));
  EXPECT_FALSE(quantile_of(rate, "0.5"));
}

TEST(Space, EachIntegerIsAsLikely) {
  const SweepParameter three = range("a", Distribution::integers, 1, 3);
  std::map<std::string, int> counts;
  for (std::uint64_t trial = 0; trial < 3000; ++trial) ++counts[value_at(three, uniform(1, "a", trial))];
  ASSERT_EQ(counts.size(), 3u);
  for (const auto& [value, count] : counts) EXPECT_NEAR(count, 1000, 120) << value;
}

TEST(Space, AParameterIsDrawnOnlyUnderItsCondition) {
  const SweepOptions sweep = small_sweep();
  const auto at = [&](double q) { return draw(sweep.parameters, [q](const auto&) { return q; }); };
  EXPECT_EQ(text(at(0)), "optimizer sgd, optimizer.sgd.momentum 0, learning_rate 0.001");
  EXPECT_EQ(text(at(0.5)), "optimizer adam, learning_rate 0.01");
  EXPECT_EQ(overrides(at(0.5)), (std::vector<std::string>{"optimizer=\"adam\"", "learning_rate=0.01"}));
}

TEST(Space, AGridHasEachCombinationOnce) {
  const auto points = grid(small_sweep().parameters);
  EXPECT_EQ(points.size(), 3u * 3 + 3);  // sgd: momentum and rate; adam: rate
  std::set<std::string> texts;
  for (const auto& point : points) texts.insert(text(point));
  EXPECT_EQ(texts.size(), points.size());
  EXPECT_TRUE(texts.contains("optimizer sgd, optimizer.sgd.momentum 0.45, learning_rate 0.1"));
}

TEST(Space, AGridThatIsTooLargeIsRefused) {
  std::vector<SweepParameter> parameters(3, range("a", Distribution::integers, 1, 1000));
  EXPECT_THROW((void)grid(parameters), Error);
}

}  // namespace
}  // namespace lockstep::sweep
