#include "observe/rank_gpu.hpp"

#include <gtest/gtest.h>

namespace lockstep::observe {

namespace {

GpuAndDriver gpu() {
  return {.gpu = {.ordinal = 0,
                  .name = "NVIDIA H100 80GB HBM3",
                  .memory_bytes = std::int64_t{80} << 30,
                  .major = 9,
                  .minor = 0,
                  .pci_bus = "0000:3b:00.0",
                  .multiprocessors = 132,
                  .clock_mhz = 1980,
                  .memory_clock_mhz = 2619},
          .driver_cuda_version = 13000,
          .driver_version = "580.65.06"};
}

}  // namespace

TEST(GpuDifferences, AreToldWithTheFirstRankThatDiffers) {
  auto slower = gpu(), smaller = gpu();
  slower.gpu.clock_mhz = 1755;
  smaller.gpu.clock_mhz = 1410;
  smaller.gpu.memory_bytes /= 2;
  smaller.driver_cuda_version = 12040;
  smaller.driver_version = "550.54.15";
  EXPECT_EQ(differences({gpu(), slower, smaller}),
            "memory (rank 0: 80.0 GiB, rank 2: 40.0 GiB), clock (rank 0: 1980 MHz, rank 1: 1755 MHz), driver (rank 0: "
            "580.65.06, for CUDA 13.0, rank 2: 550.54.15, for CUDA 12.4)");
}

TEST(GpuDifferences, DriversForOneCudaDifferByTheirOwnVersion) {
  auto other = gpu(), silent = gpu();
  other.driver_version = "580.82.07";
  silent.driver_version = "";
  EXPECT_EQ(differences({gpu(), other}), "driver (rank 0: 580.65.06, for CUDA 13.0, rank 1: 580.82.07, for CUDA 13.0)");
  EXPECT_EQ(differences({silent, other}), "driver (rank 0: for CUDA 13.0, rank 1: 580.82.07, for CUDA 13.0)");
  EXPECT_EQ(differences({silent, silent}), "");
}

TEST(GpuDifferences, PlaceIsNone) {
  auto other = gpu();
  other.gpu.pci_bus = "0000:86:00.0";
  other.gpu.ordinal = 1;
  EXPECT_EQ(differences({gpu(), other}), "");
  EXPECT_EQ(differences({gpu()}), "");
}

}  // namespace lockstep::observe
