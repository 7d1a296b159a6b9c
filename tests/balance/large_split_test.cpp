// Greedy splits: compared with the exact ones, and for a cluster that is too large for those.
#include "step/balance/large_split.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>

#include "step/balance/split.hpp"

namespace lockstep::balance {
namespace {

struct LargeCase {
  std::vector<RankCost> ranks;
  int micro_batches = 0;
  double reduce = 0;
};

// About `micro_batches_each` micro-batches for a rank, speeds scattered by 10 %, one rank at half speed.
LargeCase scattered(std::mt19937& random, int count, int micro_batches_each, int workers, double reduce) {
  LargeCase c{{}, count * micro_batches_each, reduce};
  for (int r = 0; r < count; ++r) {
    const double slower = 1 + static_cast<double>(random() % 1000) / 10'000;
    c.ranks.push_back({0.01 * slower, 0.001, workers, 4 * micro_batches_each});
  }
  c.ranks[random() % c.ranks.size()].seconds_per_micro_batch *= 2;
  return c;
}

int distance(const std::vector<int>& a, const std::vector<int>& b) {
  int sum = 0;
  for (std::size_t r = 0; r < a.size(); ++r) sum += std::abs(a[r] - b[r]);
  return sum;
}

void expect_valid(const LargeCase& c, const std::vector<int>& counts) {
  ASSERT_EQ(counts.size(), c.ranks.size());
  ASSERT_EQ(std::accumulate(counts.begin(), counts.end(), 0), c.micro_batches);
  for (std::size_t r = 0; r < counts.size(); ++r) {
    ASSERT_GE(counts[r], 0);
    ASSERT_LE(counts[r], c.ranks[r].max_micro_batches);
  }
}

// Arbitrary cases: few ranks, coarse rounds, memory limits, an all-reduce that matters or not.
LargeCase any_case(std::mt19937& random) {
  LargeCase c{
      {}, 1 + static_cast<int>(random() % 60), random() % 2 == 0 ? 0 : static_cast<double>(random() % 100) / 50};
  int room = 0;
  for (std::size_t ranks = 1 + random() % 12; c.ranks.size() < ranks || room < c.micro_batches;) {
    const int most = 1 + static_cast<int>(random() % 40);
    room += most;
    c.ranks.push_back({0.1 + static_cast<double>(random() % 1000) / 200, static_cast<double>(random() % 10) / 10,
                       1 + static_cast<int>(random() % 4), most});
  }
  return c;
}

TEST(LargeSplit, MostWithinIsThatOfATrialOfAllCounts) {
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    const RankCost rank{static_cast<double>(random() % 50) / 10, static_cast<double>(random() % 10) / 10,
                        1 + static_cast<int>(random() % 4), static_cast<int>(random() % 200)};
    const int micro_batches = static_cast<int>(random() % 200);
    const double reduce = static_cast<double>(random() % 30) / 10;
    // Often exactly the time of some count, so that rounding matters.
    const double limit = rank_seconds(rank, static_cast<int>(random() % 200), reduce) - (random() % 4 == 0 ? 0.05 : 0);
    int expected = -1;
    for (int n = 0; n <= std::min(micro_batches, rank.max_micro_batches); ++n) {
      if (rank_seconds(rank, n, reduce) <= limit) expected = n;
    }
    ASSERT_EQ(max_within(rank, micro_batches, reduce, limit), expected) << "round " << round;
  }
}

TEST(LargeSplit, FastestStepIsTheFirstTimeOfARankThatIsEnough) {
  std::mt19937 random(6);
  for (int round = 0; round < 500; ++round) {
    const LargeCase c = any_case(random);
    std::vector<double> times;
    for (const RankCost& rank : c.ranks) {
      for (int n = 0; n <= std::min(c.micro_batches, rank.max_micro_batches); ++n)
        times.push_back(rank_seconds(rank, n, c.reduce));
    }
    std::sort(times.begin(), times.end());
    const auto is_enough = [&](double limit) {
      int sum = 0;
      for (const RankCost& rank : c.ranks) {
        int most = -1;
        for (int n = 0; n <= std::min(c.micro_batches, rank.max_micro_batches); ++n) {
          if (rank_seconds(rank, n, c.reduce) <= limit) most = n;
        }
        if (most < 0) return false;
        sum += most;
      }
      return sum >= c.micro_batches;
    };
    ASSERT_EQ(fastest_step(c.ranks, c.micro_batches, c.reduce), *std::find_if(times.begin(), times.end(), is_enough));
  }
}

TEST(LargeSplit, IsMostOftenAsFastAsTheExactOne) {
  std::mt19937 random(2);
  int slower = 0;
  constexpr int kRounds = 2000;
  double worst = 1;
  for (int round = 0; round < kRounds; ++round) {
    const LargeCase c = any_case(random);
    std::vector<int> near(c.ranks.size(), 0);
    for (int v = 0; v < c.micro_batches; ++v) ++near[random() % near.size()];
    const auto counts = large_split(c.ranks, c.micro_batches, c.reduce, near, 0);
    expect_valid(c, counts);
    const double exact = step_seconds(c.ranks, best_split(c.ranks, c.micro_batches, c.reduce, near), c.reduce);
    const double ratio = step_seconds(c.ranks, counts, c.reduce) / exact;
    ASSERT_GE(ratio, 1);
    ASSERT_LE(ratio, step_seconds(c.ranks, greedy_counts(c.ranks, c.micro_batches, c.reduce), c.reduce) / exact);
    slower += ratio > 1.000002 ? 1 : 0;
    worst = std::max(worst, ratio);
  }
  RecordProperty("slower", slower);
  RecordProperty("worst", std::to_string(worst));
  EXPECT_LE(slower, kRounds / 100);
}

TEST(LargeSplit, IsAsFastAsTheExactOneOfScatteredSpeedsAndMovesAsFew) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    const double reduce = round % 3 == 0 ? 0 : 0.01 / static_cast<double>(1 + random() % 20);
    const LargeCase c =
        scattered(random, 64, 8 + static_cast<int>(random() % 9), 1 + static_cast<int>(random() % 2), reduce);
    const std::vector<int> near(c.ranks.size(), c.micro_batches / static_cast<int>(c.ranks.size()));
    for (const double slack : {0.0, 0.02}) {
      const auto exact = best_split(c.ranks, c.micro_batches, reduce, near, slack);
      const auto counts = large_split(c.ranks, c.micro_batches, reduce, near, slack);
      expect_valid(c, counts);
      if (slack == 0) {
        ASSERT_LE(step_seconds(c.ranks, counts, reduce), step_seconds(c.ranks, exact, reduce) * 1.000002) << round;
      }
      ASSERT_LE(distance(counts, near), distance(exact, near)) << "round " << round << ", slack " << slack;
    }
  }
}

TEST(LargeSplit, WithoutABeforeToo) {
  std::mt19937 random(4);
  const LargeCase c = scattered(random, 64, 8, 1, 0.001);
  const auto counts = large_split(c.ranks, c.micro_batches, c.reduce, {}, 0);
  expect_valid(c, counts);
  EXPECT_LE(step_seconds(c.ranks, counts, c.reduce), 1.01 * fastest_step(c.ranks, c.micro_batches, c.reduce));
}

// The exact search would need 8.6 GB for the choices alone.
TEST(LargeSplit, SixteenThousandRanks) {
  std::mt19937 random(5);
  for (const double reduce : {0.0, 0.0005, 0.01, 0.1}) {
    const LargeCase c = scattered(random, 16'384, 8, 1, reduce);
    const std::vector<int> near(c.ranks.size(), 8);
    const auto counts = best_split(c.ranks, c.micro_batches, reduce, near, 0.005);
    expect_valid(c, counts);
    EXPECT_LE(step_seconds(c.ranks, counts, reduce), 1.01 * fastest_step(c.ranks, c.micro_batches, reduce)) << reduce;
    EXPECT_LT(distance(counts, near), c.micro_batches / 10) << reduce;
  }
}

}  // namespace
}  // namespace lockstep::balance
