// What early failures mean, and which places get trials.
#include "tools/sweep/quarantine.hpp"

#include <gtest/gtest.h>

namespace lockstep::sweep {
namespace {

using Meaning = Quarantine::Meaning;
using Names = std::set<std::string>;

const Names kBoth = {"host a", "host b"}, kNone = {};

/// As the sweep does: decides, and notes it in the trial.
Meaning fail(Quarantine& quarantine, Trial& trial, const std::string& place, int code, double now,
             const Names& there = kBoth, double seconds = 0.4) {
  const Meaning meaning = quarantine.failed(trial, {place, code, seconds}, there, now);
  trial.failed_on[place] = code;
  return meaning;
}

TEST(Quarantine, OnOnePlaceAnEarlyFailureIsTheTrials) {
  Quarantine quarantine(30, false, 1);
  Trial trial{.number = 3};
  for (const int code : {1, 65, 73, 76, 78, 79}) {
    EXPECT_EQ(fail(quarantine, trial, "this machine", code, 0, {"this machine"}), Meaning::trial) << code;
  }
  EXPECT_TRUE(quarantine.admits(trial, "this machine", {"this machine"}, kNone, 0));
}

TEST(Quarantine, ATrialIsTriedElsewhereAndThePlaceWaits) {
  Quarantine quarantine(30, false, 1);
  Trial trial{.number = 3}, next{.number = 4};
  EXPECT_EQ(fail(quarantine, trial, "host b", 65, 100), Meaning::place);
  EXPECT_EQ(quarantine.left("host b", 100), 30);
  EXPECT_FALSE(quarantine.admits(trial, "host b", kBoth, kNone, 100));
  EXPECT_FALSE(quarantine.admits(next, "host b", kBoth, kNone, 100));
  EXPECT_TRUE(quarantine.admits(trial, "host a", kBoth, kNone, 100));
  quarantine.trained(3, "host a", 110);
  EXPECT_FALSE(quarantine.admits(next, "host b", kBoth, kNone, 129));
  EXPECT_TRUE(quarantine.admits(next, "host b", kBoth, kNone, 130));
  EXPECT_FALSE(quarantine.admits(next, "host b", kBoth, {"host b"}, 130)) << "one trial at a time";
  EXPECT_EQ(fail(quarantine, next, "host b", 65, 131), Meaning::place);
  EXPECT_EQ(quarantine.left("host b", 131), 60) << "twice as long";
  Trial third{.number = 5};
  quarantine.trained(5, "host b", 200);
  EXPECT_TRUE(quarantine.admits(third, "host b", kBoth, {"host b"}, 200));
}

TEST(Quarantine, WhatFailsAlikeOnTwoHostsIsTheTrialsFailure) {
  Quarantine quarantine(30, false, 1);
  Trial trial{.number = 3}, next{.number = 4};
  EXPECT_EQ(fail(quarantine, trial, "host b", 78, 0), Meaning::place);
  EXPECT_EQ(fail(quarantine, trial, "host a", 78, 1), Meaning::trial);
  EXPECT_TRUE(quarantine.admits(next, "host b", kBoth, kNone, 1)) << "it was not to blame";
  Trial other{.number = 5};
  EXPECT_EQ(fail(quarantine, other, "host b", 65, 0), Meaning::place);
  EXPECT_EQ(fail(quarantine, other, "host a", 73, 1), Meaning::place) << "not alike";
}

TEST(Quarantine, WhereAllWaitAllAreTried) {
  Quarantine quarantine(30, false, 1);
  Trial one{.number = 1}, two{.number = 2};
  EXPECT_EQ(fail(quarantine, one, "host a", 65, 0), Meaning::place);
  EXPECT_EQ(fail(quarantine, two, "host b", 65, 0), Meaning::place);
  EXPECT_TRUE(quarantine.admits(one, "host b", kBoth, kNone, 0));
  EXPECT_FALSE(quarantine.admits(one, "host a", kBoth, kNone, 0));
  EXPECT_TRUE(quarantine.admits(one, "host a", {"host a"}, kNone, 0)) << "the other host is lost";
}

TEST(Quarantine, DivergenceLateFailuresAndUnknownCodesAreTheTrials) {
  Quarantine quarantine(30, true, 1);
  Trial trial{.number = 3};
  for (const int code : {64, 70, 76, 137})
    EXPECT_EQ(fail(quarantine, trial, "host a", code, 0), Meaning::trial) << code;
  EXPECT_EQ(fail(quarantine, trial, "host a", 65, 0, kBoth, 61), Meaning::trial);
}

TEST(Quarantine, AnOutageIsWaitedForWhereTrialsHaveTrained) {
  const Names here = {"this machine"};
  Quarantine quarantine(30, true, 1);
  Trial one{.number = 1}, two{.number = 2};
  EXPECT_EQ(fail(quarantine, one, "this machine", 78, 0, here), Meaning::trial) << "settings may need too much memory";
  EXPECT_EQ(fail(quarantine, one, "this machine", 65, 0, here), Meaning::outage);
  EXPECT_TRUE(quarantine.admits(one, "this machine", here, kNone, 0));
  EXPECT_EQ(fail(quarantine, one, "this machine", 65, 0.5, here), Meaning::outage);
  EXPECT_FALSE(quarantine.admits(one, "this machine", here, kNone, 0.5));
  EXPECT_FALSE(quarantine.holds_back(0.5)) << "another trial shows whether it is this one's fault";
  EXPECT_EQ(fail(quarantine, two, "this machine", 65, 0.6, here), Meaning::outage);
  EXPECT_EQ(fail(quarantine, two, "this machine", 65, 0.7, here), Meaning::outage);
  EXPECT_TRUE(quarantine.holds_back(0.8));
  EXPECT_FALSE(quarantine.holds_back(3));
  quarantine.trained(2, "this machine", 4);
  EXPECT_EQ(fail(quarantine, one, "this machine", 65, 5, here), Meaning::trial) << "others train";
}

TEST(Quarantine, AnOutageIsGivenUpAfterSomeMinutes) {
  const Names here = {"this machine"};
  Quarantine quarantine(30, true, 1);
  Trial trial{.number = 1};
  EXPECT_EQ(fail(quarantine, trial, "this machine", 1, 0, here), Meaning::outage);
  EXPECT_EQ(fail(quarantine, trial, "this machine", 1, 299, here), Meaning::outage);
  EXPECT_EQ(fail(quarantine, trial, "this machine", 1, 301, here), Meaning::trial);
}

}  // namespace
}  // namespace lockstep::sweep
