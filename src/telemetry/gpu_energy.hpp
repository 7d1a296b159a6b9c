// The energy that a rank's GPU draws, by the counter of its driver. It is read by the training thread, so
// once a second at most.
#pragma once

#include <memory>
#include <string>

#include "core/spans.hpp"
#include "telemetry/nvml.hpp"

namespace lockstep::telemetry {

class GpuEnergy {
 public:
  /// `device`: as nvml::find_gpu() has it. Null where there is no such GPU, or where it has no counter.
  [[nodiscard]] static std::unique_ptr<GpuEnergy> open(std::shared_ptr<const nvml::Library> library,
                                                       const std::string& device);

  /// Since it was opened. A lost GPU adds nothing; when the counter restarts (the driver was reloaded), what was used
  /// since the last reading is not counted.
  [[nodiscard]] double joules();

 private:
  GpuEnergy(std::shared_ptr<const nvml::Library> library, nvml::Device device, unsigned long long counter)
      : library_(std::move(library)), device_(device), counter_(counter) {}

  std::shared_ptr<const nvml::Library> library_;
  nvml::Device device_;
  unsigned long long counter_;  // millijoules, at the last reading  NOLINT(google-runtime-int): NVML's type
  double joules_ = 0;
  Clock::time_point looked_ = Clock::now();
};

}  // namespace lockstep::telemetry
