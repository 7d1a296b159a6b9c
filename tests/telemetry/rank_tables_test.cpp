// What step events report about ranks has the same size for any number of them.
#include "observe/telemetry/rank_tables.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::telemetry {
namespace {

TEST(RankTables, FewRanksAreAllThere) {
  const std::vector<double> values = {0.5, -1, 0.25, 0};
  EXPECT_EQ(all_values(values), (events::ByRank{{0, 0.5}, {2, 0.25}, {3, 0}}));
  EXPECT_EQ(largest_values(values), all_values(values));
  EXPECT_EQ(spread_of_values(values), (events::ByName{{"min", 0}, {"median", 0.25}, {"p95", 0.5}, {"max", 0.5}}));
}

TEST(RankTables, NoValues) {
  EXPECT_EQ(largest_values({}), events::ByRank{});
  EXPECT_EQ(spread_of_values(std::vector<double>{-1}), events::ByName{});
}

TEST(RankTables, OfManyRanksThoseWithTheLargestValues) {
  std::vector<double> values(16'384);
  for (std::size_t r = 0; r < values.size(); ++r) values[r] = static_cast<double>(r % 8192);
  const events::ByRank largest = largest_values(values);
  ASSERT_EQ(largest.size(), events::Step::kMostRanks);
  EXPECT_EQ(largest.begin()->first, 8184);
  EXPECT_EQ(largest.rbegin()->first, 16'383);
  EXPECT_EQ(spread_of_values(values), (events::ByName{{"min", 0}, {"median", 4096}, {"p95", 7782}, {"max", 8191}}));
}

}  // namespace
}  // namespace lockstep::telemetry
