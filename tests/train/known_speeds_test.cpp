// First shares from the speeds of earlier runs.
#include "run/train/known_speeds.hpp"

#include <gtest/gtest.h>

#include "train/small_run.hpp"

namespace lockstep::train {
namespace {

using telemetry::PrometheusSample;

std::vector<PrometheusSample> samples() {
  return {{{{"host", "a"}, {"device", "old"}}, 0.4},
          {{{"host", "b"}, {"device", "new"}}, 0.1},
          {{{"host", "c"}, {"device", "new"}}, 0.2}};
}

TEST(EarlierRuns, ByHostAndDeviceElseByDevice) {
  const auto speeds = earlier_speeds(samples(), {{"a", "old"}, {"c", "new"}, {"d", "new"}});
  EXPECT_EQ(speeds.seconds_per_micro_batch[0], 0.4);
  EXPECT_EQ(speeds.seconds_per_micro_batch[1], 0.2);
  EXPECT_DOUBLE_EQ(speeds.seconds_per_micro_batch[2], 0.15);
  EXPECT_EQ(speeds.evidence, "by host and device for ranks 0 1, by device for rank 2");
  EXPECT_TRUE(speeds.complete());
}

TEST(EarlierRuns, AnotherDeviceOfTheSameHostTellsNothing) {
  const auto speeds = earlier_speeds(samples(), {{"b", "new"}, {"b", "old one"}});
  EXPECT_EQ(speeds.seconds_per_micro_batch[1], 0);
  EXPECT_EQ(speeds.evidence, "by host and device for rank 0");
  EXPECT_FALSE(speeds.complete());
  EXPECT_FALSE(earlier_speeds({}, {{"a", "old"}}).complete());
  EXPECT_FALSE(earlier_speeds({}, {}).complete());
}

TEST(EarlierRuns, AnswersOfPrometheus) {
  const auto answer = telemetry::parse_answer(
      R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{"host":"a"},"value":[1,"0.25"]}]}})");
  EXPECT_EQ(answer.problem, "");
  ASSERT_EQ(answer.samples.size(), 1U);
  EXPECT_EQ(answer.samples[0].labels.at("host"), "a");
  EXPECT_EQ(answer.samples[0].value, 0.25);
  EXPECT_EQ(telemetry::parse_answer(R"({"status":"error","error":"parse error"})").problem, "parse error");
  EXPECT_EQ(telemetry::parse_answer("<html>").problem, "it is not a response of Prometheus");
}

}  // namespace
}  // namespace lockstep::train
