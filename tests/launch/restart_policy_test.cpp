#include "launch/restart_policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace lockstep::launch {
namespace {

TEST(RestartPolicy, PermanentCodesAreThoseOfTheTable) {
  for (int code = 0; code < 200; ++code) {
    EXPECT_EQ(is_permanent(code), (code >= 64 && code <= 78 && code != 75)) << code;
  }
}

constexpr std::uint64_t kSeed = 1;

TEST(RestartPolicy, GivesUpWhereItGetsNoFurther) {
  RestartPolicy policy({3}, kSeed);
  for (const double wait : {0, 1, 2}) {
    const auto decision = policy.failed(17, 0, false);
    EXPECT_TRUE(decision.again);
    EXPECT_GE(decision.after_seconds, 0.75 * wait);
    EXPECT_LE(decision.after_seconds, 1.25 * wait);
  }
  EXPECT_FALSE(policy.failed(12, 0, false).again);
}

TEST(RestartPolicy, ARunThatGetsFurtherIsStartedAgainForEver) {
  RestartPolicy policy({1}, kSeed);
  for (int step = 0; step < 1000; ++step) {
    const auto decision = policy.failed(step, 0, false);
    EXPECT_TRUE(decision.again);
    EXPECT_EQ(decision.after_seconds, 0);
  }
}

TEST(RestartPolicy, AttemptsThatEndForAnotherNumberOfRanksGetFurtherToo) {
  RestartPolicy policy({1}, kSeed);
  for (int step = 0; step < 1000; ++step) {
    EXPECT_TRUE(policy.failed(-1, 0, false).again);  // a host has left while its ranks were starting
    policy.ended(step);                              // the others went on, until it was back
  }
  policy.ended(999);  // as far as before
  EXPECT_TRUE(policy.failed(-1, 0, false).again);
  EXPECT_FALSE(policy.failed(-1, 0, false).again);
}

TEST(RestartPolicy, AFaultThatMayPassIsGivenUpByTime) {
  RestartPolicy policy({3, 300}, kSeed);
  double now = 1000;
  int attempts = 0;
  for (auto decision = policy.failed(17, now, true); decision.again; decision = policy.failed(17, now, true)) {
    now += 0.5 + decision.after_seconds;
    ++attempts;
  }
  EXPECT_GE(now, 1300);
  EXPECT_LE(now, 1376);
  EXPECT_GE(attempts, 9);
  EXPECT_TRUE(policy.failed(18, now, true).again) << "it got further";
  EXPECT_TRUE(policy.failed(18, now + 299, true).again);
}

TEST(RestartPolicy, AQuickFaultIsTriedAsOftenAsACrashHoweverLongThatTakes) {
  RestartPolicy policy({2, 300}, kSeed);
  EXPECT_TRUE(policy.failed(-1, 0, true).again);
  EXPECT_TRUE(policy.failed(-1, 1000, true).again);
  EXPECT_FALSE(policy.failed(-1, 2000, true).again);
}

TEST(RestartPolicy, TheWaitIsAMinuteAtMostAndAQuarterMoreOrLess) {
  RestartPolicy policy({100}, kSeed), same({100}, kSeed), other({100}, kSeed + 1);
  double least = 1e9, most = 0;
  int differ = 0;
  for (int i = 0; i < 60; ++i) {
    const double wait = policy.failed(-1, 0, false).after_seconds;
    EXPECT_EQ(same.failed(-1, 0, false).after_seconds, wait);
    differ += static_cast<int>(other.failed(-1, 0, false).after_seconds != wait);
    if (i < 10) continue;
    least = std::min(least, wait);
    most = std::max(most, wait);
  }
  EXPECT_GE(least, 45);
  EXPECT_LE(most, 75);
  EXPECT_GT(most - least, 20);
  EXPECT_GT(differ, 50);
}

TEST(RestartPolicy, NoRestartsMeansNone) {
  RestartPolicy policy({0, 300}, kSeed);
  EXPECT_FALSE(policy.failed(5, 0, true).again);
}

}  // namespace
}  // namespace lockstep::launch
