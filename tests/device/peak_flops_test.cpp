// The peak performance of a processor.
#include "device/device.hpp"

#include <gtest/gtest.h>

namespace lockstep::device {
namespace {

TEST(PeakFlops, TwoVectorsOfFusedMultiplyAddsACycle) {
  EXPECT_EQ(peak_flops("avx512_core_amx", 2e9, 4), 2 * 2 * 16 * 2e9 * 4);
  EXPECT_EQ(peak_flops("avx2_vnni", 3e9, 1), 2 * 2 * 8 * 3e9);
  EXPECT_EQ(peak_flops("avx10_1_512", 1e9, 1), 64e9);
}

TEST(PeakFlops, WhatIsNotKnownIsZero) {
  EXPECT_EQ(peak_flops("sse41", 2e9, 4), 0);
  EXPECT_EQ(peak_flops("avx2", 0, 4), 0);
}

TEST(PeakFlops, AClockIsPlausibleWhereOneIsTold) {
  const double hertz = cpu_hertz();
  EXPECT_TRUE(hertz == 0 || (hertz > 1e8 && hertz < 1e11)) << hertz;
}

}  // namespace
}  // namespace lockstep::device
