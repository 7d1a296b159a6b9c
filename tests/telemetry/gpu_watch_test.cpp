// What slows a rank's GPU down, from made-up samples.
#include "observe/telemetry/gpu_watch.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::telemetry {
namespace {

constexpr GpuLook kWell{.utilization = 0.97, .own = 0.95, .watts = 500, .micro_batch_seconds = 0.010};

/// After a quiet period of `kWell`, `looks` samples of another kind.
GpuCause after(const GpuLook& look, std::size_t looks = GpuWatch::kWindow) {
  GpuWatch watch;
  for (std::size_t i = 0; i < 2 * GpuWatch::kWindow; ++i) watch.add(kWell);
  EXPECT_EQ(watch.cause(), GpuCause::none);
  for (std::size_t i = 0; i < looks; ++i) watch.add(look);
  return watch.cause();
}

TEST(GpuWatch, KernelsWhileTheRankHasNoneAreAnother) {
  GpuLook idle = kWell;
  idle.own = 0.4;  // the rank waits for data, and yet the GPU is busy
  EXPECT_EQ(after(idle), GpuCause::co_tenant);
  idle.utilization = 0.5;
  EXPECT_EQ(after(idle), GpuCause::none);
}

TEST(GpuWatch, SlowerWithTheSamePowerIsAnother) {
  GpuLook slow = kWell;
  slow.micro_batch_seconds = 0.018;
  EXPECT_EQ(after(slow), GpuCause::co_tenant);
  slow.watts = 350;  // no other user: the rank itself does less
  EXPECT_EQ(after(slow), GpuCause::none);
}

TEST(GpuWatch, SlowerWithAClockHeldDownIsThrottled) {
  GpuLook hot = kWell;
  hot.micro_batch_seconds = 0.014;
  hot.throttled = true;
  EXPECT_EQ(after(hot), GpuCause::throttled);
  hot.micro_batch_seconds = kWell.micro_batch_seconds;  // throttled occasionally, without effect
  EXPECT_EQ(after(hot), GpuCause::none);
}

TEST(GpuWatch, AFewLooksSayNothing) {
  GpuLook busy = kWell;
  busy.own = 0;
  EXPECT_EQ(after(busy, GpuWatch::kWindow / 2), GpuCause::none);
  GpuWatch fresh;
  for (std::size_t i = 0; i + 1 < GpuWatch::kWindow; ++i) fresh.add(busy);
  EXPECT_EQ(fresh.cause(), GpuCause::none);
}

TEST(GpuWatch, WhatIsNotKnownIsNoReason) {
  GpuLook blind = kWell;
  blind.utilization = blind.watts = std::nan("");
  blind.micro_batch_seconds = 0.03;
  EXPECT_EQ(after(blind), GpuCause::none);
}

TEST(GpuWatch, ItPasses) {
  GpuWatch watch;
  GpuLook busy = kWell;
  busy.own = 0.3;
  for (std::size_t i = 0; i < GpuWatch::kWindow; ++i) watch.add(busy);
  EXPECT_EQ(watch.cause(), GpuCause::co_tenant);
  for (std::size_t i = 0; i < GpuWatch::kWindow; ++i) watch.add(kWell);
  EXPECT_EQ(watch.cause(), GpuCause::none);
}

}  // namespace
}  // namespace lockstep::telemetry
