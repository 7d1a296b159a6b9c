#include "train/gpu_events.hpp"

#include <gtest/gtest.h>

namespace lockstep::train {

namespace {

backend::GpuInfo gpu() {
  return {.ordinal = 0,
          .name = "NVIDIA H100 80GB HBM3",
          .memory_bytes = std::int64_t{80} << 30,
          .major = 9,
          .minor = 0,
          .pci_bus = "0000:3b:00.0",
          .multiprocessors = 132,
          .clock_mhz = 1980,
          .memory_clock_mhz = 2619};
}

}  // namespace

TEST(GpuDifferences, AreToldWithTheFirstRankThatDiffers) {
  auto slower = gpu(), smaller = gpu();
  slower.clock_mhz = 1755;
  smaller.clock_mhz = 1410;
  smaller.memory_bytes /= 2;
  EXPECT_EQ(differences({gpu(), slower, smaller}, {13000, 13000, 12040}),
            "memory (rank 0: 80.0 GiB, rank 2: 40.0 GiB), clock (rank 0: 1980 MHz, rank 1: 1755 MHz), driver (rank 0: "
            "for CUDA 13.0, rank 2: for CUDA 12.4)");
}

TEST(GpuDifferences, PlaceIsNone) {
  auto other = gpu();
  other.pci_bus = "0000:86:00.0";
  other.ordinal = 1;
  EXPECT_EQ(differences({gpu(), other}, {13000, 13000}), "");
  EXPECT_EQ(differences({gpu()}, {13000}), "");
}

}  // namespace lockstep::train
