// The GPU of a rank as reported by NVML, NVIDIA's management library, and the report on all ranks' GPUs at the start of
// a run: one event per rank, and a warning if they differ.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/gpu/driver.hpp"
#include "observe/rank_context.hpp"
#include "observe/telemetry/nvml.hpp"

namespace lockstep::observe {

struct RankGpu {
  std::shared_ptr<const telemetry::nvml::Library> library;  ///< null: there is no GPU to query, or see `problem`
  std::string device;                                       ///< for nvml::find_gpu()
  bool computes = false;                                    ///< whether the rank computes on it
  std::string problem;
};

/// A rank that computes on a GPU queries the driver's NVML for the GPU on its PCI bus. $LOCKSTEP_NVML names another
/// library, and lets ranks on CPUs query it, too, for the GPU numbered like their local rank; without it, they query
/// none.
[[nodiscard]] RankGpu rank_gpu(const RankContext& run);

/// "580.65.06", the version of this machine's driver, from the same library; empty: unknown.
[[nodiscard]] std::string driver_version();

/// Emits one event for each rank's GPU. Collective, each rank passing its own. `driver_cuda_version`: see DriverFacts.
void emit_gpus(const RankContext& run, const device::GpuInfo& own, int driver_cuda_version);

struct GpuAndDriver {
  device::GpuInfo gpu;
  int driver_cuda_version = 0;  ///< see DriverFacts
  std::string driver_version;   ///< "580.65.06"; empty: unknown
};

/// How the ranks' GPUs differ, each property with the first rank that differs from rank 0: "memory clock (rank 0: 2619
/// MHz, rank 3: 1593 MHz)"; empty: not at all.
[[nodiscard]] std::string differences(const std::vector<GpuAndDriver>& ranks);

/// "580.65.06, for CUDA 13.0"
[[nodiscard]] std::string driver_text(const std::string& version, int cuda_version);

}  // namespace lockstep::observe
