// When a pod may take a vacant lead.
#include <gtest/gtest.h>

#include "launch/pod/succession.hpp"

namespace lockstep::launch {
namespace {

constexpr double kAfterLeader = 5, kAfterNone = 300, kStart = 1000;
constexpr bool kBegun = true, kNew = false;

Vacancy vacancy(bool first) {
  return {first, kAfterLeader, kAfterNone, kStart};
}

TEST(Vacancy, TheFirstPodNeverWaits) {
  EXPECT_TRUE(vacancy(true).may_take(kNew, kStart));
  EXPECT_TRUE(vacancy(true).may_take(kBegun, kStart));
}

TEST(Vacancy, NobodyElseStartsANewJob) {
  Vacancy of_worker = vacancy(false);
  EXPECT_FALSE(of_worker.may_take(kNew, kStart + 1e6));
  of_worker.seen(kStart + 1);  // the first pod, while it waits for all hosts
  EXPECT_FALSE(of_worker.may_take(kNew, kStart + 1e6));
}

TEST(Vacancy, AWorkerWaitsFromTheLastTimeItHasSeenALeader) {
  Vacancy of_worker = vacancy(false);
  of_worker.seen(kStart + 100);
  of_worker.seen(kStart + 200);
  EXPECT_FALSE(of_worker.may_take(kBegun, kStart + 204.9));
  EXPECT_TRUE(of_worker.may_take(kBegun, kStart + 205));
  EXPECT_EQ(of_worker.seconds(kStart + 205), 5);
}

// All pods of a job may be new at once, as after a preemption. The first is about to start.
TEST(Vacancy, AWorkerThatHasSeenNobodyWaitsLonger) {
  const Vacancy of_worker = vacancy(false);
  EXPECT_FALSE(of_worker.has_seen_a_leader());
  EXPECT_FALSE(of_worker.may_take(kBegun, kStart + 299));
  EXPECT_TRUE(of_worker.may_take(kBegun, kStart + 300));
}

}  // namespace
}  // namespace lockstep::launch
