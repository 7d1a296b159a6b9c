// The GPU of a rank as NVML, NVIDIA's library about its GPUs, knows it.
#pragma once

#include <memory>
#include <string>

#include "telemetry/nvml.hpp"
#include "train/run_context.hpp"

namespace lockstep::train {

struct RankGpu {
  std::shared_ptr<const telemetry::nvml::Library> library;  ///< null: there is none to ask, or see `problem`
  std::string device;                                       ///< for nvml::find_gpu()
  std::string problem;
};

/// $LOCKSTEP_NVML names the library; it is asked for the GPU whose number is the rank's local one. Without it nothing
/// is asked.
[[nodiscard]] RankGpu rank_gpu(const RunContext& run);

}  // namespace lockstep::train
