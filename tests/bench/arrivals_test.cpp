#include "tools/bench/arrivals.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::bench {
namespace {

TEST(Arrivals, NothingComesWithoutARate) {
  Arrivals arrivals(1, "failures");
  EXPECT_EQ(arrivals.next(), std::numeric_limits<double>::infinity());
  arrivals.set_rate(5, 2);
  EXPECT_GT(arrivals.next(), 5);
  arrivals.set_rate(5, 0);
  EXPECT_EQ(arrivals.next(), std::numeric_limits<double>::infinity());
}

TEST(Arrivals, EqualSeedsAndNamesGiveEqualDraws) {
  Arrivals a(7, "failures"), b(7, "failures"), other_seed(8, "failures"), other_name(7, "stragglers");
  for (Arrivals* arrivals : {&a, &b, &other_seed, &other_name}) arrivals->set_rate(0, 1);
  EXPECT_NE(a.next(), other_seed.next());
  EXPECT_NE(a.next(), other_name.next());
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(a.next(), b.next());
    EXPECT_EQ(a.take(10), b.take(10));
  }
}

TEST(Arrivals, HalfTheRateTakesTwiceTheTimeThatIsLeft) {
  Arrivals arrivals(1, "failures");
  arrivals.set_rate(0, 2);
  const double first = arrivals.next();
  arrivals.set_rate(first / 4, 1);
  EXPECT_DOUBLE_EQ(arrivals.next(), first / 4 + 2 * (first - first / 4));
  arrivals.set_rate(first / 2, 2);
  EXPECT_DOUBLE_EQ(arrivals.next(), first / 2 + (first / 4 + 2 * (first - first / 4) - first / 2) / 2);
}

// For 100,000 exponential times: their mean is 1 / rate within 1 %, three standard errors, and so is the share of
// longer ones, 1 / e; and all things are hit about equally often.
TEST(Arrivals, AreExponentialAndHitAllAlike) {
  constexpr int kCount = 100'000, kThings = 10;
  Arrivals arrivals(3, "failures");
  arrivals.set_rate(0, 0.25);
  std::vector<int> hits(kThings);
  double last = 0;
  int longer = 0;
  for (int i = 0; i < kCount; ++i) {
    if (arrivals.next() - last > 4) ++longer;
    last = arrivals.next();
    ++hits[static_cast<std::size_t>(arrivals.take(kThings))];
  }
  EXPECT_NEAR(last / kCount, 4, 0.04);
  EXPECT_NEAR(longer, kCount * 0.367879, 500);
  for (const int hit : hits) EXPECT_NEAR(hit, kCount / kThings, 400);
}

}  // namespace
}  // namespace lockstep::bench
