// The GPU of a rank as NVML, NVIDIA's library about its GPUs, knows it.
#pragma once

#include <memory>
#include <string>

#include "observe/rank_context.hpp"
#include "telemetry/nvml.hpp"

namespace lockstep::observe {

struct RankGpu {
  std::shared_ptr<const telemetry::nvml::Library> library;  ///< null: there is none to ask, or see `problem`
  std::string device;                                       ///< for nvml::find_gpu(), which finds it
  std::string problem;
};

/// A rank that computes on a GPU asks the driver's own NVML for the one on its PCI bus. $LOCKSTEP_NVML names another
/// library, and has ranks on CPUs ask it, too, for the GPU whose number is the rank's local one; else those ask
/// nothing.
[[nodiscard]] RankGpu rank_gpu(const RankContext& run);

/// "580.65.06", the version of this machine's driver, by the same library; empty: nobody says.
[[nodiscard]] std::string driver_version();

}  // namespace lockstep::observe
