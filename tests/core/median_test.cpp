#include "core/median.hpp"

#include <gtest/gtest.h>

namespace lockstep {

TEST(Median, TheMiddleTheUpperOfTwoAndNothing) {
  EXPECT_EQ(median({5, 1, 3}), 3);
  EXPECT_EQ(median({4, 1, 3, 2}), 3);
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({}), 0);
}

}  // namespace lockstep
