#include "balance/split.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <random>

namespace lockstep::balance {
namespace {

void each_split(int shards, std::size_t rank, std::vector<int>& counts, const std::function<void()>& visit) {
  if (rank + 1 == counts.size()) {
    counts[rank] = shards;
    visit();
    return;
  }
  for (int n = 0; n <= shards; ++n) {
    counts[rank] = n;
    each_split(shards - n, rank + 1, counts, visit);
  }
}

struct Case {
  std::vector<RankCost> ranks;
  int shards = 0;
  double reduce = 0;
};

Case random_case(std::mt19937& random) {
  Case c;
  c.shards = 1 + static_cast<int>(random() % 14);
  c.reduce = random() % 2 == 0 ? 0 : static_cast<double>(random() % 100) / 100;
  int room = 0;
  for (std::size_t ranks = 1 + random() % 4; c.ranks.size() < ranks || room < c.shards;) {
    const int most = 1 + static_cast<int>(random() % 14);
    room += most;
    c.ranks.push_back({.seconds_per_shard = 0.1 + static_cast<double>(random() % 1000) / 200,
                       .fixed_seconds = static_cast<double>(random() % 10) / 10,
                       .workers = 1 + static_cast<int>(random() % 3),
                       .max_shards = most});
  }
  return c;
}

bool fits(const Case& c, const std::vector<int>& counts) {
  for (std::size_t r = 0; r < counts.size(); ++r) {
    if (counts[r] > c.ranks[r].max_shards) return false;
  }
  return true;
}

double brute_force(const Case& c) {
  double best = 1e300;
  std::vector<int> counts(c.ranks.size());
  each_split(c.shards, 0, counts, [&] {
    if (fits(c, counts)) best = std::min(best, step_seconds(c.ranks, counts, c.reduce));
  });
  return best;
}

}  // namespace

TEST(Cost, ShardsTakeRoundsOfWorkers) {
  const RankCost rank{.seconds_per_shard = 2, .fixed_seconds = 0.5, .workers = 4, .max_shards = 99};
  EXPECT_EQ(rank_seconds(rank, 0, 0), 0.5);
  EXPECT_EQ(rank_seconds(rank, 1, 0), 2.5);
  EXPECT_EQ(rank_seconds(rank, 4, 0), 2.5);
  EXPECT_EQ(rank_seconds(rank, 5, 0), 4.5);
}

TEST(Cost, PartialSumsAreThoseOfTheBinaryForm) {
  const RankCost rank{.seconds_per_shard = 0, .fixed_seconds = 0, .workers = 1, .max_shards = 99};
  EXPECT_EQ(rank_seconds(rank, 0, 1), 1);
  EXPECT_EQ(rank_seconds(rank, 8, 1), 2);
  EXPECT_EQ(rank_seconds(rank, 7, 1), 4);
}

TEST(Split, IsAsFastAsTheBestOfAllSplits) {
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    const Case c = random_case(random);
    const auto counts = best_split(c.ranks, c.shards, c.reduce);
    ASSERT_EQ(std::accumulate(counts.begin(), counts.end(), 0), c.shards);
    ASSERT_TRUE(fits(c, counts));
    const double best = brute_force(c);
    ASSERT_EQ(step_seconds(c.ranks, counts, c.reduce), best) << "round " << round;
    ASSERT_LE(fastest_step(c.ranks, c.shards, c.reduce), best);
  }
}

TEST(Split, GreedyIsBestWithoutAnAllReduce) {
  std::mt19937 random(4);
  for (int round = 0; round < 400; ++round) {
    Case c = random_case(random);
    c.reduce = 0;
    const auto counts = best_split_without_reduce(c.ranks, c.shards);
    ASSERT_EQ(std::accumulate(counts.begin(), counts.end(), 0), c.shards);
    ASSERT_TRUE(fits(c, counts));
    ASSERT_EQ(step_seconds(c.ranks, counts, 0), brute_force(c)) << "round " << round;
  }
}

TEST(Split, StaysAsNearAsTheSlackAllows) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const Case c = random_case(random);
    std::vector<int> near(c.ranks.size(), 0);
    for (int v = 0; v < c.shards; ++v) ++near[random() % near.size()];
    const double slack = 0.1, limit = brute_force(c) * (1 + slack);
    const auto distance = [&](const std::vector<int>& counts) {
      int sum = 0;
      for (std::size_t r = 0; r < counts.size(); ++r) sum += std::abs(counts[r] - near[r]);
      return sum;
    };
    int nearest = 1000;
    std::vector<int> counts(c.ranks.size());
    each_split(c.shards, 0, counts, [&] {
      if (fits(c, counts) && step_seconds(c.ranks, counts, c.reduce) <= limit) {
        nearest = std::min(nearest, distance(counts));
      }
    });
    const auto found = best_split(c.ranks, c.shards, c.reduce, near, slack);
    ASSERT_LE(step_seconds(c.ranks, found, c.reduce), limit);
    ASSERT_EQ(distance(found), nearest) << "round " << round;
  }
}

TEST(Split, ASlowAllReducePrefersWholeSubtrees) {
  const std::vector<RankCost> ranks(2, {.seconds_per_shard = 1, .fixed_seconds = 0, .workers = 1, .max_shards = 16});
  std::vector<RankCost> uneven = ranks;
  uneven[1].seconds_per_shard = 1.3;
  EXPECT_EQ(best_split(uneven, 16, 0), (std::vector{9, 7}));
  EXPECT_EQ(best_split(uneven, 16, 2), (std::vector{8, 8})) << "7 shards would be three partial sums";
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
