// The GPU of a rank: as NVML, NVIDIA's library about its GPUs, knows it, and what the run reports of all ranks' GPUs
// when it starts: one event a rank, and a warning where they are not alike.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/gpu/driver.hpp"
#include "observe/rank_context.hpp"
#include "telemetry/nvml.hpp"

namespace lockstep::observe {

struct RankGpu {
  std::shared_ptr<const telemetry::nvml::Library> library;  ///< null: there is none to ask, or see `problem`
  std::string device;                                       ///< for nvml::find_gpu(), which finds it
  bool computes = false;                                    ///< whether the rank does so on it
  std::string problem;
};

/// A rank that computes on a GPU asks the driver's own NVML for the one on its PCI bus. $LOCKSTEP_NVML names another
/// library, and has ranks on CPUs ask it, too, for the GPU whose number is the rank's local one; else those ask
/// nothing.
[[nodiscard]] RankGpu rank_gpu(const RankContext& run);

/// "580.65.06", the version of this machine's driver, by the same library; empty: not known.
[[nodiscard]] std::string driver_version();

/// Emits one event for each rank's GPU. Every rank calls it, with its own. `driver_cuda_version`: as in DriverFacts.
void emit_gpus(const RankContext& run, const device::GpuInfo& own, int driver_cuda_version);

struct GpuAndDriver {
  device::GpuInfo gpu;
  int driver_cuda_version = 0;  ///< as DriverFacts::cuda_version
  std::string driver_version;   ///< "580.65.06"; empty: not known
};

/// In what the GPUs of ranks differ, each with the first rank that differs from rank 0: "memory clock (rank 0: 2619
/// MHz, rank 3: 1593 MHz)"; empty: nothing.
[[nodiscard]] std::string differences(const std::vector<GpuAndDriver>& ranks);

/// "580.65.06, for CUDA 13.0"
[[nodiscard]] std::string driver_text(const std::string& version, int cuda_version);

}  // namespace lockstep::observe
