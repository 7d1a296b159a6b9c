#include "run/ensemble/shares.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "run/ensemble/soup.hpp"

namespace lockstep::ensemble {
namespace {

TEST(Shares, RanksHaveMembersOfTheirOwnWhereTheNumbersDivide) {
  const auto shares = shares_of_ranks(10, {4, 4}, 2);
  ASSERT_EQ(shares.size(), 2U);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(shares[rank].size(), 1U);
    EXPECT_EQ(shares[rank][0].member, rank);
    EXPECT_EQ(shares[rank][0].micro_batches, (std::vector<int>{0, 1, 2}));
  }
}

TEST(Shares, EveryMicroBatchOnceAndAboutAsManySamplesEach) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (const std::int64_t samples : {1, 7, 64, 1000}) {
      const std::vector<std::int64_t> micro_batch_samples = {16, 8, 5};
      std::vector<std::vector<int>> seen(3);
      std::vector<std::int64_t> counts;
      for (const auto& of_rank : shares_of_ranks(samples, micro_batch_samples, ranks)) {
        auto& count = counts.emplace_back(0);
        for (const Share& share : of_rank) {
          EXPECT_TRUE(std::is_sorted(share.micro_batches.begin(), share.micro_batches.end()));
          for (const int micro_batch : share.micro_batches) {
            const std::int64_t b = micro_batch_samples[share.member];
            count += std::min(b, samples - micro_batch * b);
            seen[share.member].push_back(micro_batch);
          }
        }
      }
      for (std::size_t m = 0; m < 3; ++m) {
        ASSERT_EQ(std::ssize(seen[m]), (samples + micro_batch_samples[m] - 1) / micro_batch_samples[m]);
        for (std::size_t i = 0; i < seen[m].size(); ++i) EXPECT_EQ(seen[m][i], static_cast<int>(i));
      }
      EXPECT_LE(*std::max_element(counts.begin(), counts.end()), samples * 3 / ranks + 32);
    }
  }
}

TEST(GreedySoup, TakesWhatDoesNotHarm) {
  std::vector<std::vector<std::size_t>> asked;
  // The order is 2 (0.9), 0 (0.8), 3 (0.8), 1 (0.7).
  const auto soup = greedy_soup({0.8, 0.7, 0.9, 0.8}, true, [&](const std::vector<std::size_t>& some) {
    asked.push_back(some);
    return some.size() == 2 ? 0.9 : some == std::vector<std::size_t>{0, 2, 3} ? 0.89 : 0.91;
  });
  EXPECT_EQ(asked, (std::vector<std::vector<std::size_t>>{{0, 2}, {0, 2, 3}, {0, 1, 2}}));
  EXPECT_EQ(soup, (std::vector<std::size_t>{0, 1, 2}));
}

TEST(GreedySoup, OfALoss) {
  const auto soup = greedy_soup({0.5, 0.4}, false, [](const auto&) { return 0.45; });
  EXPECT_EQ(soup, std::vector<std::size_t>{1});
}

}  // namespace
}  // namespace lockstep::ensemble
