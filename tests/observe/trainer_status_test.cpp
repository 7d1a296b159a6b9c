// What Kubeflow's Trainer is told of a run.
#include "observe/trainer_status.hpp"

#include <gtest/gtest.h>

namespace lockstep::observe {
namespace {

constexpr const char* kNow = "2026-01-31T09:05:00Z";

std::string with(const std::string& status) {
  return R"({"trainerStatus":{)" + status + R"("lastUpdatedTime":"2026-01-31T09:05:00Z"}})";
}

TEST(TrainerProgress, IsTheBodyOfARequest) {
  TrainerProgress progress;
  EXPECT_EQ(progress.body(kNow), with(R"("metrics":[],)"));
  EXPECT_TRUE(progress.take(events::Start{.steps = 200}));
  EXPECT_TRUE(progress.take(events::Restart{.step = 99, .path = "a"}));
  EXPECT_EQ(progress.body(kNow), with(R"("progressPercentage":49,"metrics":[],)"));
  progress.take(events::Step{.step = 100, .epoch = 2, .loss = 0.25, .learning_rate = 0.1, .seconds = 10});
  progress.take(events::Step{
      .step = 150, .epoch = 2, .loss = 1.0 / 3, .learning_rate = 0.1, .metrics = {{"accuracy", 0.5}}, .seconds = 20});
  EXPECT_EQ(
      progress.body(kNow),
      with(R"("progressPercentage":75,"estimatedRemainingSeconds":10,"metrics":[{"name":"accuracy","value":"0.5"},)"
           R"({"name":"epoch","value":"2"},{"name":"learning_rate","value":"0.1"},)"
           R"({"name":"loss","value":"0.333333"},{"name":"step","value":"150"}],)"));
}

TEST(TrainerProgress, OnlyTheEndIsAHundred) {
  TrainerProgress progress;
  progress.take(events::Start{.steps = 2});
  progress.take(events::Step{.step = 2, .epoch = 1, .loss = 1});
  EXPECT_NE(progress.body(kNow).find(R"("progressPercentage":99,)"), std::string::npos);
  progress.take(events::Evaluation{.step = 2, .set = "validation", .loss = 2});
  EXPECT_NE(progress.body(kNow).find(R"({"name":"validation_loss","value":"2"})"), std::string::npos);
  progress.take(events::End{.steps = 2, .interrupted = true});
  EXPECT_NE(progress.body(kNow).find(R"("progressPercentage":99,)"), std::string::npos);
  progress.take(events::End{.steps = 2});
  EXPECT_NE(progress.body(kNow).find(R"("progressPercentage":100,"estimatedRemainingSeconds":0,)"), std::string::npos);
  EXPECT_FALSE(progress.take(events::Warning{}));
}

}  // namespace
}  // namespace lockstep::observe
