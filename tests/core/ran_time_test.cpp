#include "core/ran_time.hpp"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

using namespace std::chrono_literals;

TEST(RanTime, CountsWhatPassesBetweenLooks) {
  const auto start = Clock::time_point(5s);
  RanTime ran(start);
  EXPECT_EQ(ran.look(start + 100ms), 100ms);
  EXPECT_EQ(ran.look(start + 900ms), 900ms);
  EXPECT_EQ(ran.stopped(), 0ms);
}

TEST(RanTime, ALongGapIsTimeInWhichTheWaiterWasStopped) {
  const auto start = Clock::time_point(5s);
  RanTime ran(start);
  (void)ran.look(start + 100ms);
  EXPECT_EQ(ran.look(start + 1h), 100ms + RanTime::kLongestGap);
  EXPECT_EQ(ran.stopped(), 1h - 100ms - RanTime::kLongestGap);
  EXPECT_EQ(ran.look(start + 1h + 100ms), 200ms + RanTime::kLongestGap);
}

}  // namespace
}  // namespace lockstep
