// What a host must answer before it may join those that train.
#include "launch/host_pool.hpp"

#include <gtest/gtest.h>

namespace lockstep::launch {
namespace {

constexpr const char* kAnswer = "Welcome to b\nlockstep 1.4.0\nlibdnnl 3.1\nfingerprint: kernels 1\nlockstep-4711";

TEST(HostAnswer, IsReadAmongOtherLines) {
  const HostAnswer answer = parse_host_answer(kAnswer);
  EXPECT_EQ(answer.version, "1.4.0");
  EXPECT_EQ(answer.fingerprint, "kernels 1");
  EXPECT_EQ(answer.launch, "lockstep-4711");
  EXPECT_EQ(parse_host_answer("lockstep 1.4.0\nlibdnnl 3.1\nfingerprint: kernels 1\n").launch, "");
}

TEST(HostAnswer, WhatDiffersIsNamed) {
  const HostAnswer expected = parse_host_answer(kAnswer);
  EXPECT_EQ(why_unfit(expected, expected), "");
  HostAnswer found = expected;
  found.version = "1.3.0";
  EXPECT_EQ(why_unfit(found, expected),
            "expected lockstep 1.4.0, which the others have, found 1.3.0; install the same version there");
  found = expected;
  found.fingerprint = "kernels 2";
  EXPECT_EQ(why_unfit(found, expected),
            "expected the fingerprint of the others, kernels 1, found kernels 2; use one kind of processor and one "
            "version of the libraries, or set exact: preferred");
  found = expected;
  found.launch = "";
  EXPECT_EQ(why_unfit(found, expected),
            "expected this launch's launch.lock in the run directory, found none; mount the run directory there");
  found.launch = "lockstep-12";
  EXPECT_EQ(
      why_unfit(found, expected),
      "expected this launch's launch.lock in the run directory, found another one; mount the run directory there");
}

TEST(HostAnswer, WhatIsNotExpectedIsNotCompared) {
  EXPECT_EQ(why_unfit(parse_host_answer(kAnswer), {"1.4.0", "", ""}), "");
}

}  // namespace
}  // namespace lockstep::launch
