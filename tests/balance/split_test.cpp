#include "step/balance/split.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <random>

namespace lockstep::balance {
namespace {

void each_split(int micro_batches, std::size_t rank, std::vector<int>& counts, const std::function<void()>& visit) {
  if (rank + 1 == counts.size()) {
    counts[rank] = micro_batches;
    visit();
    return;
  }
  for (int n = 0; n <= micro_batches; ++n) {
    counts[rank] = n;
    each_split(micro_batches - n, rank + 1, counts, visit);
  }
}

struct Case {
  std::vector<RankCost> ranks;
  int micro_batches = 0;
  double reduce = 0;
};

Case random_case(std::mt19937& random) {
  Case c;
  c.micro_batches = 1 + static_cast<int>(random() % 14);
  c.reduce = random() % 2 == 0 ? 0 : static_cast<double>(random() % 100) / 100;
  int room = 0;
  for (std::size_t ranks = 1 + random() % 4; c.ranks.size() < ranks || room < c.micro_batches;) {
    const int most = 1 + static_cast<int>(random() % 14);
    room += most;
    c.ranks.push_back({.seconds_per_micro_batch = 0.1 + static_cast<double>(random() % 1000) / 200,
                       .fixed_seconds = static_cast<double>(random() % 10) / 10,
                       .workers = 1 + static_cast<int>(random() % 3),
                       .max_micro_batches = most});
  }
  return c;
}

bool fits(const Case& c, const std::vector<int>& counts) {
  for (std::size_t r = 0; r < counts.size(); ++r) {
    if (counts[r] > c.ranks[r].max_micro_batches) return false;
  }
  return true;
}

double brute_force(const Case& c) {
  double best = 1e300;
  std::vector<int> counts(c.ranks.size());
  each_split(c.micro_batches, 0, counts, [&] {
    if (fits(c, counts)) best = std::min(best, step_seconds(c.ranks, counts, c.reduce));
  });
  return best;
}

}  // namespace

TEST(Cost, MicroBatchesTakeRoundsOfWorkers) {
  const RankCost rank{.seconds_per_micro_batch = 2, .fixed_seconds = 0.5, .workers = 4, .max_micro_batches = 99};
  EXPECT_EQ(rank_seconds(rank, 0, 0), 0.5);
  EXPECT_EQ(rank_seconds(rank, 1, 0), 2.5);
  EXPECT_EQ(rank_seconds(rank, 4, 0), 2.5);
  EXPECT_EQ(rank_seconds(rank, 5, 0), 4.5);
}

TEST(Cost, PartialSumsAreThoseOfTheBinaryForm) {
  const RankCost rank{.seconds_per_micro_batch = 0, .fixed_seconds = 0, .workers = 1, .max_micro_batches = 99};
  EXPECT_EQ(rank_seconds(rank, 0, 1), 1);
  EXPECT_EQ(rank_seconds(rank, 8, 1), 2);
  EXPECT_EQ(rank_seconds(rank, 7, 1), 4);
}

TEST(Split, IsAsFastAsTheBestOfAllSplits) {
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    const Case c = random_case(random);
    const auto counts = best_split(c.ranks, c.micro_batches, c.reduce);
    ASSERT_EQ(std::accumulate(counts.begin(), counts.end(), 0), c.micro_batches);
    ASSERT_TRUE(fits(c, counts));
    const double best = brute_force(c);
    ASSERT_EQ(step_seconds(c.ranks, counts, c.reduce), best) << "round " << round;
    ASSERT_LE(fastest_step(c.ranks, c.micro_batches, c.reduce), best);
  }
}

TEST(Split, GreedyIsBestWithoutAnAllReduce) {
  std::mt19937 random(4);
  for (int round = 0; round < 400; ++round) {
    Case c = random_case(random);
    c.reduce = 0;
    const auto counts = best_split_without_reduce(c.ranks, c.micro_batches);
    ASSERT_EQ(std::accumulate(counts.begin(), counts.end(), 0), c.micro_batches);
    ASSERT_TRUE(fits(c, counts));
    ASSERT_EQ(step_seconds(c.ranks, counts, 0), brute_force(c)) << "round " << round;
  }
}

TEST(Split, StaysAsNearAsTheSlackAllows) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const Case c = random_case(random);
    std::vector<int> near(c.ranks.size(), 0);
    for (int v = 0; v < c.micro_batches; ++v) ++near[random() % near.size()];
    const double slack = 0.1, limit = brute_force(c) * (1 + slack);
    const auto distance = [&](const std::vector<int>& counts) {
      int sum = 0;
      for (std::size_t r = 0; r < counts.size(); ++r) sum += std::abs(counts[r] - near[r]);
      return sum;
    };
    int nearest = 1000;
    std::vector<int> counts(c.ranks.size());
    each_split(c.micro_batches, 0, counts, [&] {
      if (fits(c, counts) && step_seconds(c.ranks, counts, c.reduce) <= limit) {
        nearest = std::min(nearest, distance(counts));
      }
    });
    const auto found = best_split(c.ranks, c.micro_batches, c.reduce, near, slack);
    ASSERT_LE(step_seconds(c.ranks, found, c.reduce), limit);
    ASSERT_EQ(distance(found), nearest) << "round " << round;
  }
}

TEST(Split, ASlowAllReducePrefersWholeSubtrees) {
  const std::vector<RankCost> ranks(
      2, {.seconds_per_micro_batch = 1, .fixed_seconds = 0, .workers = 1, .max_micro_batches = 16});
  std::vector<RankCost> uneven = ranks;
  uneven[1].seconds_per_micro_batch = 1.3;
  EXPECT_EQ(best_split(uneven, 16, 0), (std::vector{9, 7}));
  EXPECT_EQ(best_split(uneven, 16, 2), (std::vector{8, 8})) << "7 micro-batches would be three partial sums";
}

TEST(Split, ManyRanksAreQuick) {
  std::mt19937 random(3);
  std::vector<RankCost> ranks;
  for (int r = 0; r < 256; ++r) {
    ranks.push_back({1 + static_cast<double>(random() % 1000) / 1000, 0.1, 1, 2048});
  }
  const auto counts = best_split(ranks, 2048, 0.05);
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), 2048);
  EXPECT_LE(step_seconds(ranks, counts, 0.05), 1.05 * fastest_step(ranks, 2048, 0.05));
}

}  // namespace lockstep::balance
