#include "step/balance/waiting.hpp"

#include <gtest/gtest.h>

namespace lockstep::balance {

TEST(Waiting, WhoComesLastIsWaitedFor) {
  Waiting waiting({1, 2, 1});
  const std::vector<RankMeasure> step = {
      {.micro_batches = 2, .compute = 2, .typical = 1, .data = 0.5, .reduce = 1.25, .fixed = 0.1},
      {.micro_batches = 2, .compute = 6, .typical = 3, .data = 0, .reduce = 0.25, .fixed = 0.1},
      {.micro_batches = 2, .compute = 1, .typical = 0.5, .data = 0, .reduce = 2.25, .fixed = 0.1}};
  waiting.add(step);
  waiting.add(step);
  const auto& times = waiting.times();
  EXPECT_EQ(times[0].compute, 4);
  EXPECT_EQ(times[0].data, 1);
  EXPECT_EQ(times[0].waited, 2);
  EXPECT_EQ(times[0].reduce, 0.5);
  EXPECT_EQ(times[1].compute, 6) << "two workers";
  EXPECT_EQ(times[1].waited, 0);
  EXPECT_EQ(times[1].held_up, 3) << "the others waited 1 and 2 seconds, twice";
  EXPECT_EQ(times[2].waited, 4);
  EXPECT_EQ(times[2].held_up, 0);
  EXPECT_DOUBLE_EQ(times[2].update, 0.2);
}

TEST(Waiting, OneRankAloneWaitsForNobody) {
  Waiting waiting({1});
  waiting.add(
      std::vector<RankMeasure>{{.micro_batches = 1, .compute = 1, .typical = 1, .data = 0, .reduce = 1, .fixed = 0}});
  EXPECT_EQ(waiting.times()[0].waited, 0);
  EXPECT_EQ(waiting.times()[0].held_up, 0);
}

}  // namespace lockstep::balance
