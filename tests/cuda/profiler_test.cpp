// How CUPTI's records are processed, and what the real library does on a machine without a GPU.
#include <gtest/gtest.h>

#include "device/cuda/cupti_profiler.hpp"
#include "device/gpu/driver.hpp"

namespace lockstep::device {
namespace {

template <class Record>
std::vector<GpuActivity> read(const Record& record) {
  std::vector<GpuActivity> activities;
  add_activity(reinterpret_cast<const CUpti_Activity&>(record), activities);
  return activities;
}

TEST(Profiler, AKernelHasItsNameInCpp) {
  CUpti_ActivityKernel10 kernel{};
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.name = "_ZN8lockstep4reluEPfl";
  kernel.streamId = 13;
  kernel.start = 1'000;
  kernel.end = 3'500;
  const auto found = read(kernel);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].name, "lockstep::relu(float*, long)");
  EXPECT_EQ(found[0].stream, 13U);
  EXPECT_EQ(found[0].begin, 1'000U);
  EXPECT_EQ(found[0].end, 3'500U);
  EXPECT_EQ(found[0].bytes, -1);
  kernel.name = "cudnn_infer_kernel";  // a C function
  EXPECT_EQ(read(kernel)[0].name, "cudnn_infer_kernel");
  kernel.name = nullptr;
  EXPECT_EQ(read(kernel)[0].name, "kernel");
}

TEST(Profiler, CopiesAndFillsHaveTheirBytes) {
  CUpti_ActivityMemcpy6 copy{};
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.bytes = 5'000'000'000;  // does not fit into 32 bits
  copy.end = 9;
  const std::pair<CUpti_ActivityMemcpyKind, const char*> kinds[] = {
      {CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, "copy to the GPU"},
      {CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, "copy to the host"},
      {CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, "copy on the GPU"},
      {CUPTI_ACTIVITY_MEMCPY_KIND_HTOH, "copy"}};
  for (const auto& [kind, name] : kinds) {
    copy.copyKind = static_cast<std::uint8_t>(kind);
    EXPECT_EQ(read(copy).at(0).name, name);
    EXPECT_EQ(read(copy).at(0).bytes, 5'000'000'000);
  }
  CUpti_ActivityMemset4 fill{};
  fill.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  fill.bytes = 64;
  fill.streamId = 2;
  fill.end = 9;
  EXPECT_EQ(read(fill).at(0).name, "fill");
  EXPECT_EQ(read(fill).at(0).stream, 2U);
  EXPECT_EQ(read(fill).at(0).bytes, 64);
}

TEST(Profiler, WhatIsStillRunningIsNoRow) {
  CUpti_ActivityMemset4 fill{};
  fill.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  fill.start = 5;
  EXPECT_TRUE(read(fill).empty());
}

TEST(Profiler, OtherRecordsTellNothing) {
  CUpti_ActivityKernel10 other{};
  other.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  EXPECT_TRUE(read(other).empty());
}

TEST(Profiler, TheRealLibraryHasWhatIsAskedOfIt) {
  if (ask_driver().state == DriverState::ready) GTEST_SKIP() << "there is a GPU";
  CuptiProfiler profiler;
  // The library is found with all functions: it is CUPTI itself that fails, for lack of a driver.
  const std::string problem = profiler.start();
  EXPECT_TRUE(problem.starts_with("cuptiActivity")) << problem;
  profiler.begin("nobody listens");
  profiler.end();
}

}  // namespace
}  // namespace lockstep::device
