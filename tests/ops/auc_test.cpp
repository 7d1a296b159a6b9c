// The area under the ROC curve, of scores by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lockstep/op.hpp"
#include "ops/auc/area_under_curve.hpp"
#include "ops/registry.hpp"

namespace lockstep::ops {

TEST(Auc, IsTheShareOfPairsInTheRightOrder) {
  EXPECT_EQ(area_under_curve({{0.1, false}, {0.4, false}, {0.35, true}, {0.8, true}}), 0.75);
  EXPECT_EQ(area_under_curve({{2, true}, {1, false}}), 1);
  EXPECT_EQ(area_under_curve({{1, true}, {2, false}}), 0);
  EXPECT_EQ(area_under_curve({{1, true}, {1, false}, {1, false}, {3, true}}), 0.75) << "equal scores count half";
  EXPECT_EQ(area_under_curve({{1, true}, {2, true}}), std::nullopt);
  EXPECT_EQ(area_under_curve({{1, false}}), std::nullopt);
  EXPECT_EQ(area_under_curve({}), std::nullopt);
}

TEST(Auc, OfSeveralLabelsIsTheMeanOfThoseThatCanBeTold) {
  OpRegistry registry;
  add_built_in(registry);
  const auto& of_samples = registry.at("auc").of_samples;
  // Scores and targets of three labels; no sample has the third.
  const std::vector<float> values = {2, 1, 5, 0, 0,  0,  //
                                     1, 0, 3, 1, 9,  0,  //
                                     0, 0, 4, 1, -1, 0};
  EXPECT_EQ(of_samples(values, 3), 0.5) << "1 and 0";
  EXPECT_TRUE(std::isnan(of_samples(std::vector<float>{1, 1, 2, 1}, 2)));
  EXPECT_TRUE(std::isnan(of_samples(std::vector<float>{NAN, 1, 2, 0}, 2)));
  EXPECT_TRUE(std::isnan(of_samples({}, 0)));
}

}  // namespace lockstep::ops
