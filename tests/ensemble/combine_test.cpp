// Combining, fitting, calibration and disagreement, against values worked out by hand.
#include "run/ensemble/combine.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/trainer.hpp"
#include "run/ensemble/calibration.hpp"
#include "run/ensemble/fit.hpp"

namespace lockstep::ensemble {
namespace {

void expect_near(const std::vector<double>& found, const std::vector<double>& wanted, double tolerance = 1e-12) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], tolerance) << i;
}

// Three members, two samples, three classes. Of the first sample they predict 0, 0 and 1; of the second 2, 1 and 1.
const std::vector<Table> kMembers = {
    {3, {0.5, 0.3, 0.2, 0.1, 0.2, 0.7}}, {3, {0.6, 0.4, 0.0, 0.2, 0.5, 0.3}}, {3, {0.1, 0.8, 0.1, 0.3, 0.4, 0.3}}};

TEST(Meaning, FollowsTheLoss) {
  const OpRegistry ops = Registries::built_in().ops;
  EXPECT_EQ(meaning_of(ops.at("cross_entropy")), Meaning::classes);
  EXPECT_EQ(meaning_of(ops.at("kl_divergence")), Meaning::classes);
  EXPECT_EQ(meaning_of(ops.at("binary_cross_entropy")), Meaning::probabilities);
  EXPECT_EQ(meaning_of(ops.at("huber")), Meaning::values);
}

TEST(Combine, ReadsAndWritesPredictions) {
  expect_near(read_prediction(Meaning::classes, std::vector<float>{0, std::log(3.0F)}), {0.25, 0.75}, 1e-7);
  expect_near(read_prediction(Meaning::probabilities, std::vector<float>{0, std::log(3.0F)}), {0.5, 0.75}, 1e-7);
  expect_near(read_prediction(Meaning::values, std::vector<float>{-2.5F, 7}), {-2.5, 7});
  for (const auto meaning : {Meaning::classes, Meaning::probabilities, Meaning::values}) {
    const std::vector<double> row = {0.25, 0.75};
    expect_near(read_prediction(meaning, as_prediction(meaning, row)), row, 1e-7);
  }
  EXPECT_FLOAT_EQ(as_prediction(Meaning::classes, std::vector<double>{0, 1})[0], std::log(1e-12F));
  EXPECT_FLOAT_EQ(as_prediction(Meaning::probabilities, std::vector<double>{1})[0], std::log(1e12F));
}

TEST(Combine, MeanAndWeights) {
  expect_near(weighted(kMembers, equal_weights(3)).values, {0.4, 0.5, 0.1, 0.2, 1.1 / 3, 1.3 / 3});
  expect_near(weighted(kMembers, {0.5, 0.25, 0.25}).values, {0.425, 0.45, 0.125, 0.175, 0.325, 0.5});
}

TEST(Combine, Vote) {
  expect_near(vote(Meaning::classes, kMembers).values, {2.0 / 3, 1.0 / 3, 0, 0, 2.0 / 3, 1.0 / 3});
  // Of equal probabilities the first class has the vote.
  expect_near(vote(Meaning::classes, {{2, {0.5, 0.5}}}).values, {1, 0});
  // 1/2 is no vote for yes.
  expect_near(vote(Meaning::probabilities, {{2, {0.6, 0.5}}, {2, {0.4, 0.9}}}).values, {0.5, 0.5});
}

TEST(Fit, LikelihoodOfTwoMembersByHand) {
  const std::vector<Table> members = {{2, {0.8, 0.2, 0.8, 0.2, 0.8, 0.2, 0.8, 0.2}},
                                      {2, {0.2, 0.8, 0.2, 0.8, 0.2, 0.8, 0.2, 0.8}}};
  // a / (0.2 + 0.6 w) = b / (0.8 - 0.6 w), a hits of the first and b of the second: w = (0.8 a - 0.2 b) / 0.6 (a + b)
  expect_near(fit_likelihood(Meaning::classes, members, {{0, 1, 1, 1}, {}}), {0.2 / 2.4, 2.2 / 2.4}, 1e-6);
  expect_near(fit_likelihood(Meaning::classes, members, {{0, 1, 0, 1}, {}}), {0.5, 0.5}, 1e-9);
  expect_near(fit_likelihood(Meaning::classes, members, {{0, 0, 0, 0}, {}}), {1, 0}, 1e-6);
}

TEST(Fit, LikelihoodOfProbabilities) {
  // One element a sample; yes three times of four, as above.
  const std::vector<Table> members = {{1, {0.8, 0.8, 0.8, 0.8}}, {1, {0.2, 0.2, 0.2, 0.2}}};
  expect_near(fit_likelihood(Meaning::probabilities, members, {{}, {1, 1, 0, 1}}), {2.2 / 2.4, 0.2 / 2.4}, 1e-6);
}

TEST(Fit, ATargetThatNobodyThinksPossibleSaysNothing) {
  const std::vector<Table> members = {{2, {1, 0, 1, 0}}, {2, {1, 0, 0.5, 0.5}}};
  expect_near(fit_likelihood(Meaning::classes, members, {{1, 0}, {}}), {1, 0}, 1e-6);
  expect_near(fit_likelihood(Meaning::classes, {{2, {1, 0}}, {2, {1, 0}}}, {{1}, {}}), {0.5, 0.5});
}

TEST(Fit, IgnoredTargetsSayNothing) {
  const std::vector<Table> members = {{2, {0.8, 0.2, 0.8, 0.2, 0.1, 0.9}}, {2, {0.2, 0.8, 0.2, 0.8, 0.9, 0.1}}};
  expect_near(fit_likelihood(Meaning::classes, members, {{0, 1, -1}, {}}), {0.5, 0.5}, 1e-9);
  const auto calibration = calibration_of(Meaning::classes, members[0], {{0, -1, 255}, {}}, 1);
  EXPECT_EQ(calibration.bins[0].count, 1);
  EXPECT_NEAR(calibration.error, 0.2, 1e-12);
}

TEST(Fit, SimplexProjection) {
  expect_near(onto_simplex({0.2, 0.8}), {0.2, 0.8});
  expect_near(onto_simplex({1, 1}), {0.5, 0.5});
  expect_near(onto_simplex({2, 0}), {1, 0});
  expect_near(onto_simplex({0.5, 0.4, -3}), {0.55, 0.45, 0});
}

TEST(Fit, SquaredErrorByHand) {
  // Errors of the members are (1, -1) and (-3, 3): a weight of 3/4 and 1/4 gives no error at all.
  expect_near(fit_squared_error({{1, {2, 4}}, {1, {-2, 8}}}, {{}, {1, 5}}), {0.75, 0.25}, 1e-6);
  // Errors (1, 0) and (0, 2): w^2 + 4 (1 - w)^2 is smallest at 4/5.
  expect_near(fit_squared_error({{1, {2, 5}}, {1, {1, 7}}}, {{}, {1, 5}}), {0.8, 0.2}, 1e-6);
  // Errors (1, 1) and (3, 3): no weights in between are better than the first alone.
  expect_near(fit_squared_error({{1, {2, 6}}, {1, {4, 8}}}, {{}, {1, 5}}), {1, 0}, 1e-6);
  expect_near(fit_squared_error({{1, {1}}, {1, {1}}}, {{}, {1}}), {0.5, 0.5});
  // Two numbers, of which each member knows one: errors of the larger one count more, unless it has other units.
  const std::vector<Table> halves = {{2, {100, 1}}, {2, {0, 2}}};
  expect_near(fit_squared_error(halves, {{}, {100, 2}}), {10000.0 / 10001, 1.0 / 10001}, 1e-6);
  expect_near(fit_squared_error(halves, {{}, {100, 2}, {100, 1}}), {0.5, 0.5}, 1e-6);
  expect_near(fit_squared_error(halves, {{}, {100, 2}, {50, 1}}), {0.8, 0.2}, 1e-6);
}

TEST(Calibration, BinsByHand) {
  // Confidences 0.5 (right), 0.8 (wrong), 0.7 (right), 1.0 (right), in four bins: 0.5 is in (0.25, 0.5].
  const Table predicted{2, {0.5, 0.5, 0.8, 0.2, 0.3, 0.7, 0, 1}};
  const auto result = calibration_of(Meaning::classes, predicted, {{0, 1, 1, 1}, {}}, 4);
  ASSERT_EQ(result.bins.size(), 4U);
  EXPECT_EQ(result.bins[0].count, 0);
  EXPECT_EQ(result.bins[1].count, 1);
  EXPECT_EQ(result.bins[2].count, 1);
  EXPECT_EQ(result.bins[3].count, 2);
  EXPECT_NEAR(result.bins[3].confidence, 0.9, 1e-12);
  EXPECT_NEAR(result.bins[3].accuracy, 0.5, 1e-12);
  EXPECT_EQ(result.bins[0].confidence, 0);
  EXPECT_NEAR(result.bins[1].low, 0.25, 1e-12);
  // 1/4 |1 - 0.5| + 1/4 |1 - 0.7| + 2/4 |0.5 - 0.9|
  EXPECT_NEAR(result.error, 0.125 + 0.075 + 0.2, 1e-12);
}

TEST(Calibration, OfProbabilitiesCountsElements) {
  // Confidences 0.9 (right: no), 0.6 (wrong: no).
  const auto result = calibration_of(Meaning::probabilities, {2, {0.1, 0.4}}, {{}, {0, 1}}, 1);
  EXPECT_EQ(result.bins[0].count, 2);
  EXPECT_NEAR(result.error, std::fabs(0.5 - 0.75), 1e-12);
}

TEST(Disagreement, Pairs) {
  expect_near(disagreement(Meaning::classes, kMembers), {0, 0.5, 1, 0.5, 0, 0.5, 1, 0.5, 0});
  EXPECT_NEAR(mean_disagreement(disagreement(Meaning::classes, kMembers), 3), 2.0 / 3, 1e-12);
  expect_near(disagreement(Meaning::values, {{1, {1, 2}}, {1, {4, 6}}}), {0, std::sqrt(12.5), std::sqrt(12.5), 0});
  expect_near(disagreement(Meaning::probabilities, {{2, {0.6, 0.4}}, {2, {0.7, 0.9}}}), {0, 0.5, 0.5, 0});
  EXPECT_EQ(mean_disagreement({0}, 1), 0);
}

}  // namespace
}  // namespace lockstep::ensemble
