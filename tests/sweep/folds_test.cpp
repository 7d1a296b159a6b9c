#include "tools/sweep/folds.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::sweep {
namespace {

Study studied(Direction direction) {
  SweepOptions options;
  options.metric = "accuracy";
  options.direction = direction;
  Study study(options);
  int trial = 0;
  for (const auto& [rate, values] :
       std::vector<std::pair<const char*, std::vector<double>>>{{"0.1", {0.5, 0.75, 1}}, {"0.2", {0.9, 0.9, 0.9}}}) {
    for (std::size_t fold = 0; fold < values.size(); ++fold) {
      study.begin({{"learning_rate", rate}, {kFoldParameter, "\"" + std::to_string(fold + 1) + " of 3\""}}, 0);
      study.tell(trial++, {.steps = 10,
                           .value = values[fold],
                           .metrics = {},
                           .outcome = "done",
                           .parameters_sha256 = "",
                           .device_seconds = 1});
    }
  }
  study.begin({{"learning_rate", "0.3"}, {kFoldParameter, "\"1 of 3\""}}, 0);
  study.fail(trial, {.message = "code 76", .device_seconds = 1, .final = true});
  return study;
}

TEST(Folds, MeansAndDeviationsOfEachSettingTheBestFirst) {
  const auto all = over_folds(studied(Direction::maximize));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].settings, (Settings{{"learning_rate", "0.2"}}));
  EXPECT_DOUBLE_EQ(all[0].mean(), 0.9);
  EXPECT_NEAR(all[0].deviation(), 0, 1e-12);
  EXPECT_DOUBLE_EQ(all[1].mean(), 0.75);
  EXPECT_DOUBLE_EQ(all[1].deviation(), 0.25);
  EXPECT_EQ(fold_lines(studied(Direction::minimize)),
            (std::vector<std::string>{"accuracy 0.7500, deviation 0.2500, of 3 folds  (learning_rate 0.1)",
                                      "accuracy 0.9000, deviation 0.0000, of 3 folds  (learning_rate 0.2)"}));
}

TEST(Folds, AreNoneWhereTheFoldIsNoParameter) {
  SweepOptions options;
  options.direction = Direction::minimize;
  Study study(options);
  study.begin({{"learning_rate", "0.1"}}, 0);
  study.tell(0,
             {.steps = 10, .value = 1, .metrics = {}, .outcome = "done", .parameters_sha256 = "", .device_seconds = 1});
  EXPECT_TRUE(over_folds(study).empty());
}

}  // namespace
}  // namespace lockstep::sweep
