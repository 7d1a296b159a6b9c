// The energy that a rank's GPU draws, by the counter of its driver. The training thread asks, so the driver is asked
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

  /// Since it was opened. A lost GPU draws no more; a counter that begins anew (the driver was loaded again) costs what
  /// was drawn between the last look and that.
  [[nodiscard]] double joules();

 private:
  GpuEnergy(std::shared_ptr<const nvml::Library> library, nvml::Device device, unsigned long long counter)
      : library_(std::move(library)), device_(device), counter_(counter) {}

  std::shared_ptr<const nvml::Library> library_;
  nvml::Device device_;
  unsigned long long counter_;  // millijoules, at the last look  NOLINT(google-runtime-int): NVML's type
  double joules_ = 0;
  Clock::time_point looked_ = Clock::now();
};

}  // namespace lockstep::telemetry
