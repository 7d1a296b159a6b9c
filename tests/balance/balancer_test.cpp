#include "step/balance/balancer.hpp"

#include <gtest/gtest.h>

namespace lockstep::balance {
namespace {

BalancerOptions two_ranks(int micro_batches) {
  return {.micro_batches = micro_batches, .workers = {1, 1}, .max_micro_batches = {micro_batches, micro_batches}};
}

// A step of ranks that take these seconds per micro-batch.
std::optional<Decision> step(Balancer& balancer, const std::vector<int>& counts, const std::vector<double>& seconds) {
  std::vector<RankMeasure> ranks;
  double last = 0;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    const double compute = counts[r] * seconds[r];
    ranks.push_back({.micro_batches = static_cast<double>(counts[r]), .compute = compute, .typical = seconds[r]});
    last = std::max(last, compute);
  }
  for (auto& rank : ranks) rank.reduce = last - rank.compute + 1e-6;
  return balancer.observe(counts, ranks, last);
}

}  // namespace

TEST(Balancer, EqualRanksKeepEqualShares) {
  Balancer balancer(two_ranks(8), {4, 4});
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(step(balancer, {4, 4}, {0.1, 0.1}));
}

TEST(Balancer, AnswersAJumpAtOnceAndSaysWhy) {
  Balancer balancer(two_ranks(12), {6, 6});
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(step(balancer, {6, 6}, {0.1, 0.1}));
  const auto decision = step(balancer, {6, 6}, {0.1, 0.21});
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->counts, (std::vector{8, 4}));
  EXPECT_EQ(decision->reason, "rank 1 became 2.10 times slower");
  EXPECT_NEAR(decision->seconds_per_micro_batch.at(0), 0.1, 1e-9);
  EXPECT_NEAR(decision->seconds_per_micro_batch.at(1), 0.21, 1e-9);
  EXPECT_NEAR(decision->measured, 1.26, 1e-9);
  EXPECT_NEAR(decision->predicted_before, 1.26, 1e-4);
  EXPECT_NEAR(decision->predicted, 0.84, 1e-4);
  EXPECT_FALSE(step(balancer, {6, 6}, {0.1, 0.21})) << "the old split while the ranks are told";
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(step(balancer, {8, 4}, {0.1, 0.21}));
}

TEST(Balancer, CallsRanksOfAPartByTheirNumbersInTheJob) {
  BalancerOptions options = two_ranks(12);
  options.numbers = {4, 7};
  Balancer balancer(std::move(options), {6, 6});
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(step(balancer, {6, 6}, {0.1, 0.1}));
  const auto decision = step(balancer, {6, 6}, {0.1, 0.21});
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->reason, "rank 7 became 2.10 times slower");
}

TEST(Balancer, OneSlowMicroBatchIsNoJump) {
  Balancer balancer(two_ranks(12), {6, 6});
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(step(balancer, {6, 6}, {0.1, 0.1}));
  const std::vector<RankMeasure> ranks = {{.micro_batches = 6, .compute = 0.6, .typical = 0.1, .reduce = 0.9},
                                          {.micro_batches = 6, .compute = 1.5, .typical = 0.1, .reduce = 1e-6}};
  EXPECT_FALSE(balancer.observe(std::vector{6, 6}, ranks, 1.5));
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(step(balancer, {6, 6}, {0.1, 0.1}));
}

TEST(Balancer, ASmallLastingDifferenceIsAnsweredAfterAWhile) {
  Balancer balancer(two_ranks(32), {16, 16});
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(step(balancer, {16, 16}, {0.1, 0.1}));
  std::optional<Decision> decision;
  int steps = 0;
  while (!decision && steps < 50) decision = step(balancer, {16, 16}, {0.1, 0.14}), ++steps;
  ASSERT_TRUE(decision);
  EXPECT_GT(steps, 3);
  EXPECT_LE(steps, 8);
  EXPECT_EQ(decision->counts, (std::vector{19, 13}));
  EXPECT_EQ(decision->reason, "a faster split, 3 samples in a row");
}

TEST(Balancer, ShortStepsAreAddedUpToSamples) {
  Balancer balancer(two_ranks(8), {4, 4});
  int steps = 0;
  for (; !step(balancer, {4, 4}, {0.001, 0.002}); ++steps) ASSERT_LT(steps, 100);
  EXPECT_GE(steps, 3 * 0.1 / 0.008 - 3);
}

TEST(Balancer, WorkersComputeInRounds) {
  // Ten micro-batches on four workers take three rounds, eight take two: with 8 + 2 the fast rank needs 2 s for two
  // rounds.
  Balancer balancer({.micro_batches = 10, .workers = {4, 1}, .max_micro_batches = {10, 10}}, {5, 5});
  const auto decision = balancer.start(std::vector{1.0, 1.0}, 0.05, "a probe");
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->counts, (std::vector{8, 2}));
  EXPECT_EQ(decision->predicted, 2);
}

TEST(Balancer, MemoryLimitsAShare) {
  Balancer balancer({.micro_batches = 8, .workers = {1, 1}, .max_micro_batches = {5, 8}}, {4, 4});
  const auto decision = balancer.start(std::vector{1.0, 3.0}, 0.05, "a probe");
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->counts, (std::vector{5, 3}));
}

TEST(Balancer, StartsFromWhatIsKnown) {
  Balancer balancer({.micro_batches = 12, .workers = {1, 1, 1}, .max_micro_batches = {12, 12, 12}}, {4, 4, 4});
  EXPECT_FALSE(balancer.start(std::vector{1.0, 1.05, 1.0}, 0.1, "a probe")) << "no gain";
  const auto decision = balancer.start(std::vector{1.0, 2.0, 0.0}, 0.1, "the checkpoint's record");
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->reason, "the checkpoint's record");
  EXPECT_EQ(decision->counts, (std::vector{5, 2, 5})) << "a rank that is not known is an ordinary one";
}

// Evaluation has its own micro-batches, so many that memory and the all-reduce do not matter.
TEST(Balancer, SplitsOtherWorkByTheSameSpeeds) {
  Balancer balancer({.micro_batches = 8, .workers = {1, 1}, .max_micro_batches = {5, 8}}, {4, 4});
  EXPECT_EQ(balancer.split(100, std::vector{50, 50}), (std::vector{50, 50})) << "nothing is known yet";
  (void)balancer.start(std::vector{1.0, 3.0}, 0.05, "a probe");
  EXPECT_EQ(balancer.split(100, std::vector{50, 50}), (std::vector{75, 25}));
  EXPECT_EQ(balancer.split(100, std::vector{74, 26}), (std::vector{75, 25})) << "78 s against 75 s";
  EXPECT_EQ(balancer.split(100, std::vector{76, 24}), (std::vector{76, 24})) << "76 s are as good";
}

TEST(Balancer, ARankTenTimesSlowerGetsNothingAndComesBack) {
  Balancer balancer(two_ranks(8), {4, 4});
  auto decision = step(balancer, {4, 4}, {0.1, 0.1});
  decision = step(balancer, {4, 4}, {0.1, 1.0});
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->counts, (std::vector{8, 0}));
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(step(balancer, {8, 0}, {0.1, 0.1})) << "nobody measured rank 1";
  // The idle rank computes a micro-batch now and then.
  const std::vector<RankMeasure> ranks = {{.micro_batches = 8, .compute = 0.8, .typical = 0.1, .reduce = 1e-6},
                                          {.micro_batches = 1, .compute = 0.1, .typical = 0.1, .reduce = 0.7}};
  decision = balancer.observe(std::vector{8, 0}, ranks, 0.8);
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->counts, (std::vector{4, 4}));
}

TEST(Balancer, AFlappingRankIsAnsweredEverMoreRarely) {
  Balancer balancer(two_ranks(12), {6, 6});
  std::vector<int> counts = {6, 6};
  std::vector<int> moves(4, 0);
  for (int i = 0; i < 2000; ++i) {
    const bool slow = i / 10 % 2 == 1;
    const auto decision = step(balancer, counts, {0.1, slow ? 0.25 : 0.1});
    if (!decision) continue;
    counts = decision->counts;
    ++moves.at(static_cast<std::size_t>(i / 500));
  }
  EXPECT_GE(moves[0], 2);
  EXPECT_LE(moves[0], 8);
  EXPECT_LE(moves[1] + moves[2] + moves[3], 9);
}

}  // namespace lockstep::balance
