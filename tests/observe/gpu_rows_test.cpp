// A GPU profiler's recording, converted to the host's clock and assigned to steps.
#include "device/gpu/gpu_profiler.hpp"
#include "observe/tracing.hpp"

#include <gtest/gtest.h>

namespace lockstep::observe {
namespace {

constexpr std::uint64_t kBegan = 1'700'000'000'000'000'000;  // its clock is not the host's

/// The host's seconds 100 to 110, with a profiler clock that runs a thousandth faster.
device::GpuRecording recorded(std::vector<device::GpuActivity> activities) {
  return {.activities = std::move(activities), .first = {100, kBegan}, .last = {110, kBegan + 10'010'000'000}};
}

std::uint64_t at(double host) {
  return kBegan + static_cast<std::uint64_t>((host - 100) * 1.001e9);
}

TEST(GpuRows, AreOnTheHostsClock) {
  const device::ClockPair first{100, kBegan}, last{110, kBegan + 10'010'000'000};
  for (const double host : {100.0, 103.25, 110.0, 112.0}) EXPECT_NEAR(host_seconds(at(host), first, last), host, 1e-6);
  EXPECT_NEAR(host_seconds(kBegan - 1'001'000'000, first, last), 99, 1e-6);    // begun before the recording
  EXPECT_NEAR(host_seconds(kBegan + 5'000'000, first, first), 100.005, 1e-9);  // one moment: its seconds are ours
}

TEST(GpuRows, AStreamIsARow) {
  std::vector<telemetry::TimelineSpan> spans;
  add_gpu_rows(recorded({{"relu", 20, at(102), at(103)},
                         {"copy to the GPU", 7, at(101), at(101.5), 4096},
                         {"conv", 20, at(101.5), at(102)}}),
               spans);
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_EQ(spans[0].name, "copy to the GPU");
  EXPECT_EQ(spans[0].track, kGpuTrack);
  EXPECT_EQ(spans[0].bytes, 4096);
  EXPECT_NEAR(spans[0].seconds(), 0.5, 1e-6);
  EXPECT_EQ(spans[1].name, "conv");  // in order of time
  EXPECT_EQ(spans[1].track, kGpuTrack + 1);
  EXPECT_EQ(spans[1].bytes, -1);
  EXPECT_EQ(spans[2].track, kGpuTrack + 1);
}

TEST(GpuRows, BelongToTheStepThatHadBegun) {
  std::vector<telemetry::TimelineSpan> spans = {
      {.name = "compute", .track = kPhaseTrack, .step = 5, .start = 101, .end = 102},
      {.name = "reduce", .track = kPhaseTrack, .step = 5, .start = 102, .end = 103},
      {.name = "compute", .track = kPhaseTrack, .step = 6, .start = 103, .end = 104}};
  add_gpu_rows(recorded({{"early", 1, at(100.5), at(100.6)},
                         {"first", 1, at(101.5), at(101.6)},
                         {"late", 1, at(102.5), at(103.5)},
                         {"second", 1, at(103.6), at(103.7)}}),
               spans);
  ASSERT_EQ(spans.size(), 7U);
  EXPECT_EQ(spans[3].step, 5);  // before any: parameters of the first step
  EXPECT_EQ(spans[4].step, 5);
  EXPECT_EQ(spans[5].step, 5);
  EXPECT_EQ(spans[6].step, 6);
}

TEST(GpuRows, OfNothingAreNone) {
  std::vector<telemetry::TimelineSpan> spans;
  add_gpu_rows(recorded({}), spans);
  EXPECT_TRUE(spans.empty());
}

}  // namespace
}  // namespace lockstep::observe
