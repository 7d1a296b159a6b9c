// What GPUs a run has: one event a rank, and a warning where they are not alike.
#pragma once

#include <string>
#include <vector>

#include "device/gpu/driver.hpp"
#include "observe/rank_context.hpp"

namespace lockstep::observe {

/// Tells of each rank's GPU. Every rank calls it, each on a GPU.
void emit_gpus(const RankContext& run);

struct GpuAndDriver {
  device::GpuInfo gpu;
  int driver_cuda_version = 0;  ///< as DriverFacts::cuda_version
  std::string driver_version;   ///< "580.65.06"; empty: nobody says
};

/// In what the GPUs of ranks differ, each with the first rank that differs from rank 0: "memory clock (rank 0: 2619
/// MHz, rank 3: 1593 MHz)"; empty: nothing.
[[nodiscard]] std::string differences(const std::vector<GpuAndDriver>& ranks);

/// "580.65.06, for CUDA 13.0"
[[nodiscard]] std::string driver_text(const std::string& version, int cuda_version);

}  // namespace lockstep::observe
