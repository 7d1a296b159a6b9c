// The metrics of a GPU, queried from stand-ins for NVIDIA's library.
#include "observe/telemetry/gpu_sample.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

namespace lockstep::telemetry {
namespace {

std::shared_ptr<const nvml::Library> loaded(const char* path) {
  std::string problem;
  auto library = nvml::Library::load(path, problem);
  EXPECT_NE(library, nullptr) << problem;
  return library;
}

class GpuSampleTest : public testing::Test {
 protected:
  ~GpuSampleTest() override { unsetenv("NVML_STAND_IN"); }
  static void behave(const char* words) { setenv("NVML_STAND_IN", words, 1); }
  /// One query to a GPU.
  void ask(const char* path = NVML_STAND_IN, const std::string& device = "0") {
    std::string problem;
    const auto gpu = GpuSample::open(loaded(path), device, problem);
    ASSERT_NE(gpu, nullptr) << problem;
    gpu->describe(metrics);
    gpu->sample(metrics);
  }
  [[nodiscard]] double get(Metric metric, std::size_t series = 0) const { return metrics.get(metric, series); }
  [[nodiscard]] bool absent(Metric metric, std::size_t series = 0) const { return std::isnan(get(metric, series)); }
  RankMetrics metrics;
};

TEST_F(GpuSampleTest, ValuesHaveBaseUnits) {
  ask();
  EXPECT_DOUBLE_EQ(get(Metric::gpu_utilization), 0.04);
  EXPECT_EQ(get(Metric::gpu_memory_used), 20.0 * (1 << 30));
  EXPECT_EQ(get(Metric::gpu_memory_total), 80.0 * (1 << 30));
  EXPECT_DOUBLE_EQ(get(Metric::gpu_power), 250.5);
  EXPECT_DOUBLE_EQ(get(Metric::gpu_energy), 12345.678);
  EXPECT_EQ(get(Metric::gpu_temperature), 61);
  EXPECT_EQ(get(Metric::gpu_sm_clock), 1980e6);
  EXPECT_EQ(get(Metric::gpu_memory_clock), 2619e6);
  EXPECT_DOUBLE_EQ(get(Metric::gpu_throttle_seconds, 0), 1.5);
  EXPECT_EQ(get(Metric::gpu_throttle_seconds, 1), 0);
  EXPECT_EQ(get(Metric::gpu_ecc_errors, 0), 5);
  EXPECT_EQ(get(Metric::gpu_ecc_errors, 1), 1);
  EXPECT_EQ(get(Metric::gpu_pcie_bytes, 0), 197'000);
  EXPECT_EQ(get(Metric::gpu_pcie_bytes, 1), 198'000);
  EXPECT_EQ(get(Metric::gpu_nvlink_bytes, 0), 3 * 1024);  // of all links
  EXPECT_EQ(get(Metric::gpu_lost), 0);
  EXPECT_EQ(get(Metric::gpu_xid_errors), 0);
  const MetricLabels expected = {
      {"driver", "550.54.15"}, {"model", "Stand-in GPU"}, {"pci", "00000000:70:00.0"}, {"uuid", "GPU-0000"}};
  EXPECT_EQ(metrics.labels(Metric::gpu_info), expected);
}

TEST_F(GpuSampleTest, ReasonsOfALowClock) {
  ask();
  for (std::size_t i = 0; i < slots_of(info_of(Metric::gpu_throttled)); ++i) {
    EXPECT_EQ(get(Metric::gpu_throttled, i), 0) << i;  // an idle GPU does not count as throttled
  }
  behave("busy");
  ask();
  EXPECT_EQ(get(Metric::gpu_throttled, 3), 1);  // heat, by hardware
  EXPECT_EQ(get(Metric::gpu_throttled, 0), 0);
}

TEST_F(GpuSampleTest, AnXidIsCountedOnce) {
  behave("busy");
  std::string problem;
  const auto gpu = GpuSample::open(loaded(NVML_STAND_IN), "1", problem);
  ASSERT_NE(gpu, nullptr);
  gpu->sample(metrics);
  gpu->sample(metrics);
  EXPECT_EQ(get(Metric::gpu_xid_errors), 1);
  EXPECT_EQ(get(Metric::gpu_last_xid), 79);
}

TEST_F(GpuSampleTest, AGpuIsFoundByItsPlaceOnTheBus) {
  ask(NVML_STAND_IN, "0000:80:00.0");
  EXPECT_EQ(metrics.labels(Metric::gpu_info).back().second, "GPU-0001");
}

TEST_F(GpuSampleTest, ALostGpuHasNoNumbers) {
  ask();
  EXPECT_FALSE(absent(Metric::gpu_power));
  behave("lost");
  ask();
  EXPECT_EQ(get(Metric::gpu_lost), 1);
  for (const Metric metric : {Metric::gpu_utilization, Metric::gpu_memory_used, Metric::gpu_power, Metric::gpu_energy,
                              Metric::gpu_temperature, Metric::gpu_sm_clock, Metric::gpu_throttled,
                              Metric::gpu_ecc_errors, Metric::gpu_pcie_bytes}) {
    EXPECT_TRUE(absent(metric)) << info_of(metric).name;
  }
  behave("");
  ask();
  EXPECT_EQ(get(Metric::gpu_lost), 0);  // it came back
  EXPECT_FALSE(absent(Metric::gpu_power));
}

TEST_F(GpuSampleTest, WhatIsNotSupportedIsNotThere) {
  behave("unsupported");
  ask();
  EXPECT_TRUE(absent(Metric::gpu_energy));
  EXPECT_TRUE(absent(Metric::gpu_ecc_errors));
  EXPECT_TRUE(absent(Metric::gpu_nvlink_bytes));
  EXPECT_EQ(get(Metric::gpu_pcie_bytes), 197'000);
  EXPECT_EQ(get(Metric::gpu_lost), 0);
}

TEST_F(GpuSampleTest, AnOldDriverLacksFunctions) {
  ask(NVML_OLD_STAND_IN);
  EXPECT_DOUBLE_EQ(get(Metric::gpu_power), 250.5);
  EXPECT_TRUE(absent(Metric::gpu_energy));
  EXPECT_TRUE(absent(Metric::gpu_pcie_bytes));
  EXPECT_TRUE(absent(Metric::gpu_xid_errors));
  std::string problem;
  EXPECT_EQ(GpuSample::open(loaded(NVML_OLD_STAND_IN), "0000:80:00.0", problem), nullptr);
}

TEST_F(GpuSampleTest, WhatCannotBeUsedSaysWhy) {
  std::string problem;
  EXPECT_EQ(nvml::Library::load("/nowhere/libnvidia-ml.so.1", problem), nullptr);
  EXPECT_EQ(problem, "/nowhere/libnvidia-ml.so.1: cannot open shared object file: No such file or directory");
  EXPECT_EQ(nvml::Library::load("libm.so.6", problem), nullptr);
  EXPECT_EQ(problem, "libm.so.6: is not NVML: it has no nvmlInit");
  EXPECT_EQ(GpuSample::open(loaded(NVML_STAND_IN), "7", problem), nullptr);
  EXPECT_EQ(problem, "NVML knows no GPU 7: Not Found");
  behave("no_driver");
  EXPECT_EQ(nvml::Library::load(NVML_STAND_IN, problem), nullptr);
  EXPECT_EQ(problem, std::string(NVML_STAND_IN) + ": nvmlInit: Driver Not Loaded");
}

}  // namespace
}  // namespace lockstep::telemetry
