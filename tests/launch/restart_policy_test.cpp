#include "launch/restart_policy.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::launch {
namespace {

TEST(RestartPolicy, PermanentCodesAreThoseOfTheTable) {
  for (int code = 0; code < 200; ++code) {
    EXPECT_EQ(is_permanent(code), (code >= 64 && code <= 78 && code != 75)) << code;
  }
}

TEST(RestartPolicy, GivesUpWhereItGetsNoFurther) {
  RestartPolicy policy(3);
  std::vector<double> waits;
  for (int i = 0; i < 3; ++i) {
    const auto decision = policy.failed(17);
    EXPECT_TRUE(decision.again);
    waits.push_back(decision.after_seconds);
  }
  EXPECT_EQ(waits, (std::vector<double>{0, 1, 2}));
  EXPECT_FALSE(policy.failed(12).again);
}

TEST(RestartPolicy, ARunThatGetsFurtherIsStartedAgainForEver) {
  RestartPolicy policy(1);
  for (int step = 0; step < 1000; ++step) {
    const auto decision = policy.failed(step);
    EXPECT_TRUE(decision.again);
    EXPECT_EQ(decision.after_seconds, 0);
  }
}

TEST(RestartPolicy, AttemptsThatEndForAnotherNumberOfRanksGetFurtherToo) {
  RestartPolicy policy(1);
  for (int step = 0; step < 1000; ++step) {
    EXPECT_TRUE(policy.failed(-1).again);  // a host has left while its ranks were starting
    policy.ended(step);                    // the others went on, until it was back
  }
  policy.ended(999);  // as far as before
  EXPECT_TRUE(policy.failed(-1).again);
  EXPECT_FALSE(policy.failed(-1).again);
}

TEST(RestartPolicy, TheWaitIsAMinuteAtMost) {
  RestartPolicy policy(100);
  double last = 0;
  for (int i = 0; i < 20; ++i) last = policy.failed(-1).after_seconds;
  EXPECT_EQ(last, 60);
}

TEST(RestartPolicy, NoRestartsMeansNone) {
  RestartPolicy policy(0);
  EXPECT_FALSE(policy.failed(5).again);
}

}  // namespace
}  // namespace lockstep::launch
