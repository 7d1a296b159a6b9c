// Who is to blame for a failed attempt.
#include "launch/fault_judge.hpp"

#include <gtest/gtest.h>

#include "core/unfit_hosts.hpp"

namespace lockstep::launch {
namespace {

constexpr int kUnfit = static_cast<int>(ExitCode::unfit_host);
using Names = std::set<std::string>;

Verdict judge(FaultJudge& judge, int code, const Names& hosts, const Names& reporting, const Names& unfit = {}) {
  return judge.judge({.code = code, .hosts = hosts, .reporting = reporting, .unfit = unfit}, true);
}

TEST(FaultJudge, AMistakeOfTheJobIsFinal) {
  FaultJudge fresh, later;
  later.trained({"a", "b"});
  for (const int code : {64, 70, 76}) {
    EXPECT_EQ(judge(fresh, code, {"a", "b"}, {"b"}).blame, Blame::job) << code;
    EXPECT_EQ(judge(later, code, {"a", "b"}, {"b"}).blame, Blame::job) << code;
  }
  for (const int code : {65, 66, 73, 78, kUnfit}) {
    EXPECT_EQ(judge(fresh, code, {"a"}, {"a"}).blame, Blame::job) << code;
    EXPECT_EQ(judge(fresh, code, {"a", "b"}, {"a", "b"}).blame, Blame::job) << code;
  }
}

TEST(FaultJudge, WhatPassesAndWhatCrashes) {
  FaultJudge fresh;
  EXPECT_EQ(fresh.judge({.code = 1, .hosts = {"a"}, .reporting = {"a"}}, true).blame, Blame::passing);
  EXPECT_EQ(fresh.judge({.code = 1, .hosts = {"a"}}, false).blame, Blame::crash);
}

TEST(FaultJudge, AnUnfitHostIsLeftOutWhoeverReportsIt) {
  FaultJudge fresh;
  const Verdict verdict = judge(fresh, kUnfit, {"a", "b", "c"}, {"a", "b", "c"}, {"c"});
  EXPECT_EQ(verdict.blame, Blame::hosts);
  EXPECT_EQ(verdict.hosts, Names{"c"});
  EXPECT_EQ(judge(fresh, kUnfit, {"a", "b"}, {"b"}).hosts, Names{"b"}) << "it has reported itself";
}

TEST(FaultJudge, WhatOneHostAloneReportsIsItsFaultUntilAnotherHasItToo) {
  FaultJudge fresh;
  EXPECT_EQ(judge(fresh, 65, {"a", "b", "c"}, {"b"}).hosts, Names{"b"});
  EXPECT_EQ(judge(fresh, 65, {"a", "c"}, {"a"}).blame, Blame::job);
  FaultJudge other;
  EXPECT_EQ(judge(other, 65, {"a", "b", "c"}, {"b"}).hosts, Names{"b"});
  EXPECT_EQ(judge(other, 73, {"a", "c"}, {"a"}).hosts, Names{"a"}) << "another code";
  FaultJudge trained;
  EXPECT_EQ(judge(trained, 65, {"a", "b", "c"}, {"b"}).hosts, Names{"b"});
  trained.trained({"a", "c"});
  EXPECT_EQ(judge(trained, 65, {"a", "b", "c"}, {"b"}).hosts, Names{"b"}) << "it is tried again later";
}

TEST(FaultJudge, AHostThatJoinsHealthyOnesIsToBlame) {
  for (const int code : {65, 66, 73, 78}) {
    FaultJudge launch;
    launch.trained({"a"});
    const Verdict verdict = judge(launch, code, {"a", "b"}, {"a"});  // what b lacks, rank 0 on a reports first
    EXPECT_EQ(verdict.blame, Blame::hosts) << code;
    EXPECT_EQ(verdict.hosts, Names{"b"}) << code;
  }
}

TEST(FaultJudge, WhatHeldBeforeIsNoMistake) {
  FaultJudge launch, resumed(/*has_trained=*/true);
  launch.trained({"a", "b"});
  for (const int code : {65, 66, 73, 78, kUnfit}) {
    EXPECT_EQ(judge(launch, code, {"a", "b"}, {"a", "b"}).blame, Blame::passing) << code;
    EXPECT_EQ(judge(resumed, code, {"a"}, {"a"}).blame, Blame::passing) << code;
  }
}

}  // namespace
}  // namespace lockstep::launch
