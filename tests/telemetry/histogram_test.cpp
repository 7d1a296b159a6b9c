#include "observe/telemetry/tensorboard.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

namespace lockstep::telemetry {

TEST(Histogram, CountsEveryValueOnce) {
  std::vector<float> values(641);
  std::iota(values.begin(), values.end(), 0.0F);  // 0 ... 640: ten in each of 64 buckets, and 0 in the first
  const Histogram h = histogram_of(values);
  EXPECT_EQ(h.count, 641);
  EXPECT_EQ(h.min, 0);
  EXPECT_EQ(h.max, 640);
  EXPECT_EQ(h.sum, 640 * 641 / 2);
  EXPECT_EQ(h.sum_of_squares, 640.0 * 641 * 1281 / 6);
  ASSERT_EQ(h.buckets.size(), 64U);
  ASSERT_EQ(h.limits.size(), 64U);
  EXPECT_EQ(h.limits.front(), 10);
  EXPECT_EQ(h.limits.back(), 640);
  EXPECT_EQ(h.buckets.front(), 11);
  for (std::size_t i = 1; i < h.buckets.size(); ++i) EXPECT_EQ(h.buckets[i], 10) << i;
}

TEST(Histogram, OneValueIsOneBucket) {
  const Histogram h = histogram_of(std::vector<float>(5, 0.25F));
  EXPECT_EQ(h.limits, std::vector<double>{0.25});
  EXPECT_EQ(h.buckets, std::vector<double>{5});
}

TEST(Histogram, LeavesOutWhatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Histogram h = histogram_of(std::vector<float>{1, infinity, 3, nan, -infinity});
  EXPECT_EQ(h.count, 2);
  EXPECT_EQ(h.max, 3);
  EXPECT_EQ(std::accumulate(h.buckets.begin(), h.buckets.end(), 0.0), 2);
  for (const auto& nothing : {std::vector<float>{}, std::vector<float>{nan}}) {
    const Histogram empty = histogram_of(nothing);
    EXPECT_EQ(empty.count, 0);
    EXPECT_EQ(empty.min, 0);
    EXPECT_EQ(empty.buckets, std::vector<double>{0});
  }
}

}  // namespace lockstep::telemetry
