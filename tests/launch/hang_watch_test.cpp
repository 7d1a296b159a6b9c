#include "launch/hang_watch.hpp"

#include <gtest/gtest.h>

namespace lockstep::launch {
namespace {

Beat beat(std::uint64_t ticks, std::int64_t step, int peer = -1, double median = 0.1) {
  return {ticks, step, median, peer, "reduce of step 3"};
}

HangWatch watch_of(int ranks) {
  HangWatch watch(ranks, {.seconds = 10, .steps = 20, .start_seconds = 100}, 0);
  for (int r = 0; r < ranks; ++r) watch.connected(r, 0);
  return watch;
}

TEST(HangWatch, ARankThatIsStoppedForSomeSecondsDoesNotHang) {
  HangWatch watch = watch_of(2);
  for (int second = 1; second <= 9; ++second) {
    watch.beat(0, second, beat(5, 3, 1));
    EXPECT_FALSE(watch.check(second));
  }
  watch.beat(1, 9.5, beat(6, 3));
  watch.beat(0, 9.6, beat(7, 4));
  EXPECT_FALSE(watch.check(15));
}

TEST(HangWatch, HoweverManyRanksTheirHeartbeatsFitIntoTheLimit) {
  for (const int ranks : {1, 64, 1024, 16'384, 1'000'000}) {
    for (const double seconds : {2.0, 60.0}) {
      const HangLimits limits{.seconds = seconds};
      EXPECT_LE(4 * beat_period(ranks, limits), seconds) << ranks;
    }
  }
  EXPECT_EQ(beat_period(8, {.seconds = 60}), 0.25);
  EXPECT_EQ(beat_period(256, {.seconds = 60}), 4);
}

TEST(HangWatch, ASilentRankIsNamed) {
  HangWatch watch = watch_of(3);
  for (int second = 1; second <= 11; ++second) {
    watch.beat(0, second, beat(5, 3, 1));
    watch.beat(2, second, beat(5, 3, 1));
  }
  const auto hang = watch.check(11);
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->rank, 1);
  EXPECT_TRUE(hang->silent);
  const auto states = watch.states(11);
  EXPECT_EQ(states[0], "rank 0: reduce of step 3");
  EXPECT_EQ(states[1], "rank 1: no heartbeat for 11.0 s; before: ");
}

TEST(HangWatch, ARankThatLivesButDoesNotWorkIsNamedByThoseWhoWait) {
  HangWatch watch = watch_of(4);
  for (int second = 1; second <= 12; ++second) {
    for (int r = 0; r < 4; ++r) watch.beat(r, second, beat(5, 3, r == 2 ? -1 : 2));
  }
  const auto hang = watch.check(12);
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->rank, 2);
  EXPECT_FALSE(hang->silent);
}

TEST(HangWatch, WhileOneRankWorksNobodyHangs) {
  HangWatch watch = watch_of(2);
  for (int second = 1; second <= 500; ++second) {
    watch.beat(0, second, beat(5, 3, 1));
    watch.beat(1, second, beat(static_cast<std::uint64_t>(second), 3));
    EXPECT_FALSE(watch.check(second));
  }
}

TEST(HangWatch, LongStepsMakeThePatienceLonger) {
  HangWatch watch = watch_of(1);
  watch.beat(0, 1, beat(5, 3, -1, 2.0));
  EXPECT_EQ(watch.limit(), 40);
  EXPECT_FALSE(watch.check(40));
  EXPECT_TRUE(watch.check(42));
}

TEST(HangWatch, TheStartHasALimitOfItsOwn) {
  HangWatch watch(2, {.seconds = 10, .steps = 20, .start_seconds = 100}, 0);
  watch.connected(0, 1);
  for (int second = 2; second <= 100; ++second) {
    watch.beat(0, second, {0, -1, 0, -1, "starting MPI"});
    EXPECT_FALSE(watch.check(second));
  }
  watch.beat(0, 102, {0, -1, 0, -1, "starting MPI"});
  const auto hang = watch.check(102);
  ASSERT_TRUE(hang);
  EXPECT_EQ(hang->rank, 1);
  EXPECT_EQ(watch.states(102)[1], "rank 1: never connected");
}

TEST(HangWatch, ARankThatHasLeftIsNotSilent) {
  HangWatch watch = watch_of(2);
  watch.left(1);
  for (int second = 1; second <= 30; ++second) watch.beat(0, second, beat(static_cast<std::uint64_t>(second), 3));
  EXPECT_FALSE(watch.check(30));
}

TEST(HangWatch, RanksThatHaveAllLeftDoNotHang) {
  HangWatch watch = watch_of(2);
  watch.left(0);
  watch.beat(1, 1, beat(5, 3));
  EXPECT_TRUE(watch.check(12));
  watch.left(1);
  EXPECT_FALSE(watch.check(12));
}

}  // namespace
}  // namespace lockstep::launch
