#include "cli/evaluation_details.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "lockstep/error.hpp"

namespace lockstep::cli {
namespace {

using ensemble::Meaning;

EvaluationDetails judged(Meaning meaning, const std::vector<std::vector<double>>& rows,
                         const ensemble::Targets& targets, const std::vector<std::string>& names,
                         std::size_t worst = 2) {
  std::vector<SamplePrediction> predictions;
  for (const auto& row : rows) predictions.push_back({meaning != Meaning::values, row});
  return details_of(meaning, predictions, targets, names, worst,
                    [](WorstSample& sample) { sample.name = "#" + std::to_string(sample.id); });
}

EvaluationDetails of_classes() {
  return judged(Meaning::classes,
                {{0.7, 0.2, 0.1}, {0.6, 0.3, 0.1}, {0.1, 0.8, 0.1}, {0.1, 0.8, 0.1}, {0.2, 0.5, 0.3}, {1, 0, 0}},
                {.classes = {0, 1, 1, 2, 2, -1}, .values = {}}, {"ant", "bee", "cat"}, 3);
}

TEST(EvaluationDetails, ClassesAreCountedByWhatTheyAreTakenFor) {
  const auto details = of_classes();
  EXPECT_EQ(details.samples, 5) << "one has no class";
  ASSERT_EQ(details.rows.size(), 3U);
  EXPECT_EQ(details.rows[1].name, "bee");
  EXPECT_EQ(details.rows[1].samples, 2);
  EXPECT_DOUBLE_EQ(details.rows[0].precision, 0.5);
  EXPECT_DOUBLE_EQ(details.rows[0].recall, 1);
  EXPECT_DOUBLE_EQ(details.rows[1].precision, 1.0 / 3);
  EXPECT_DOUBLE_EQ(details.rows[1].recall, 0.5);
  EXPECT_DOUBLE_EQ(f1_of(details.rows[1]), 0.4);
  EXPECT_DOUBLE_EQ(details.rows[2].precision, 0) << "never predicted";
  EXPECT_DOUBLE_EQ(f1_of(details.rows[2]), 0);
  std::int64_t all = 0;
  for (const auto& pair : details.confusions) all += pair.samples;
  EXPECT_EQ(all, 5);
  const auto most = confused_most(details);
  ASSERT_EQ(most.size(), 2U);
  EXPECT_EQ(most[0].actual, 2);
  EXPECT_EQ(most[0].predicted, 1);
  EXPECT_EQ(most[0].samples, 2);
}

TEST(EvaluationDetails, AreaUnderTheCurve) {
  // Of the positives 0.9, 0.5, 0.2 and the negatives 0.5, 0.1: five pairs in order, one equal.
  const auto details = judged(Meaning::probabilities, {{0.9}, {0.5}, {0.2}, {0.5}, {0.1}},
                              {.classes = {}, .values = {1, 1, 1, 0, 0}}, {"yes"});
  EXPECT_DOUBLE_EQ(details.rows[0].auc.value(), (2 + 1.5 + 1) / 6);
  const auto all = judged(Meaning::probabilities, {{0.9}, {0.5}}, {.classes = {}, .values = {1, 1}}, {"yes"});
  EXPECT_EQ(all.rows[0].auc, std::nullopt);
}

TEST(EvaluationDetails, TheWorstComeFirst) {
  const auto details = of_classes();
  ASSERT_EQ(details.worst.size(), 3U);
  EXPECT_EQ(details.worst[0].id, 3);
  EXPECT_DOUBLE_EQ(details.worst[0].loss, -std::log(0.1));
  EXPECT_EQ(details.worst[0].actual, "cat");
  EXPECT_EQ(details.worst[0].predicted, "bee (0.8000)");
  EXPECT_EQ(details.worst[1].id, 1) << "0.3, as sample 4: the first of equals";
  EXPECT_EQ(details.worst[2].id, 4);
}

TEST(EvaluationDetails, LabelsByThemselves) {
  const auto details = judged(Meaning::probabilities, {{0.9, 0.6}, {0.2, 0.7}, {0.4, 0.1}},
                              {.classes = {}, .values = {1, 0, 0, 1, 1, 0}}, {"sun", "rain"});
  EXPECT_DOUBLE_EQ(details.rows[0].precision, 1);
  EXPECT_DOUBLE_EQ(details.rows[0].recall, 0.5);
  EXPECT_DOUBLE_EQ(details.rows[1].precision, 0.5);
  EXPECT_DOUBLE_EQ(details.rows[1].recall, 1);
  EXPECT_TRUE(details.confusions.empty());
  EXPECT_EQ(details.worst[0].id, 0);
  EXPECT_EQ(details.worst[0].actual, "sun");
  EXPECT_EQ(details.worst[0].predicted, "sun (0.9000), rain (0.6000)");
  EXPECT_EQ(details.worst[1].predicted, "sun (0.4000)") << "missed";
}

TEST(EvaluationDetails, ErrorsOfValues) {
  const auto details = judged(Meaning::values, {{1, 10}, {2, 14}}, {.classes = {}, .values = {0, 10, 4, 10}}, {});
  EXPECT_EQ(details.rows[0].name, "0");
  EXPECT_DOUBLE_EQ(details.rows[0].absolute_error, 1.5);
  EXPECT_DOUBLE_EQ(details.rows[0].root_squared_error, std::sqrt(2.5));
  EXPECT_DOUBLE_EQ(details.rows[1].root_squared_error, std::sqrt(8.0));
  EXPECT_EQ(details.worst[0].id, 1);
  EXPECT_DOUBLE_EQ(details.worst[0].loss, 10);
  EXPECT_EQ(details.worst[0].actual, "4, 10");
}

TEST(EvaluationDetails, ErrorsOfNormalizedValuesCountInStandardDeviations) {
  const std::vector<std::vector<double>> said = {{5, 10}, {2, 14}};
  EXPECT_EQ(judged(Meaning::values, said, {.classes = {}, .values = {0, 10, 1, 10}}, {}).worst[0].id, 0);
  const auto details = judged(Meaning::values, said, {.classes = {}, .values = {0, 10, 1, 10}, .units = {10, 2}}, {});
  EXPECT_EQ(details.worst[0].id, 1);
  EXPECT_DOUBLE_EQ(details.worst[0].loss, (0.01 + 4) / 2);
  EXPECT_DOUBLE_EQ(details.rows[0].absolute_error, 3);
}

TEST(EvaluationDetails, WhatIsNoNumberIsTheWorst) {
  const auto details =
      judged(Meaning::classes, {{0.5, 0.5}, {NAN, NAN}}, {.classes = {0, 1}, .values = {}}, {"a", "b"});
  EXPECT_EQ(details.worst[0].id, 1);
  EXPECT_TRUE(std::isfinite(details.worst[0].loss)) << "JSON knows no other numbers";
}

TEST(EvaluationDetails, ForPeople) {
  EXPECT_EQ(details_text(of_classes()),
            "  class           samples  precision     recall         f1        auc\n"
            "  ant                   1     0.5000     1.0000     0.6667     1.0000\n"
            "  bee                   2     0.3333     0.5000     0.4000     0.5833\n"
            "  cat                   2     0.0000     0.0000     0.0000     0.7500\n"
            "  most often taken for another: cat as bee (2), bee as ant (1)\n"
            "  worst: #3, loss 2.303, is cat, predicted bee (0.8000)\n");
}

class DetailsFile : public testing::Test {
 protected:
  DetailsFile() : run_(testing::TempDir() + "details_file") { std::filesystem::remove_all(run_); }
  std::string run_;
};

TEST_F(DetailsFile, IsReadBack) {
  auto details = of_classes();
  details.set = "test";
  details.checkpoint = "runs/a/checkpoints/step-00000007";
  details.step = 7;
  details.worst[0].png = "AAAA";
  EXPECT_EQ(read_details(run_, "test"), std::nullopt);
  EXPECT_EQ(write_details(run_, details), run_ + "/evaluations/test.json");
  EXPECT_EQ(read_details(run_, "test"), details);
}

TEST_F(DetailsFile, IsDamaged) {
  std::filesystem::create_directories(run_ + "/evaluations");
  const auto error_of = [&](const std::string& text) -> std::string {
    std::ofstream(run_ + "/evaluations/test.json") << text;
    try {
      (void)read_details(run_, "test");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      return error.what();
    }
    return "";
  };
  const std::string after = "; write it again with lockstep eval " + run_ + " --set test --details";
  EXPECT_EQ(error_of(R"({"set": "test", "checkpoint": "c", "step": 1, "samples": 2, "predicts": "thoughts"})"),
            run_ + R"(/evaluations/test.json: damaged ("predicts" is none of classes, labels, values))" + after);
  EXPECT_EQ(error_of(R"({"set": "test", "checkpoint": "c", "step": 1, "samples": 2, "predicts": "classes",
                         "rows": [{"name": "a", "samples": 2}], "confusions": [[0, 1, 2]]})"),
            run_ + "/evaluations/test.json: damaged (a class that there is not)" + after);
  EXPECT_NE(error_of("{"), "");
}

}  // namespace
}  // namespace lockstep::cli
