// A rank's GPU as NVML knows it: its metrics, read at each scrape, and the energy that it draws.
//
// What the driver or the device does not have, or does not answer this time, is absent (NaN), not 0.
#pragma once

#include <memory>
#include <string>

#include "core/spans.hpp"
#include "telemetry/nvml.hpp"
#include "telemetry/rank_metrics.hpp"

namespace lockstep::telemetry {

class GpuSample {
 public:
  /// `device`: as nvml::find_gpu() has it. Null where there is no such GPU; `problem` says why.
  [[nodiscard]] static std::unique_ptr<GpuSample> open(std::shared_ptr<const nvml::Library> library,
                                                       const std::string& device, std::string& problem);
  ~GpuSample();
  GpuSample(const GpuSample&) = delete;
  GpuSample& operator=(const GpuSample&) = delete;

  /// lockstep_gpu_info. To be called before the first scrape.
  void describe(RankMetrics& metrics) const;
  /// All others. Once a GPU is lost, only lockstep_gpu_lost and the XIDs are left.
  void sample(RankMetrics& metrics);

 private:
  GpuSample(std::shared_ptr<const nvml::Library> library, nvml::Device device);
  /// Whether the call returned a value; notes a lost GPU.
  bool gave(int result);
  void sample_state(RankMetrics& metrics);
  void sample_clocks(RankMetrics& metrics);
  void sample_errors(RankMetrics& metrics);
  void sample_traffic(RankMetrics& metrics);
  void sample_events(RankMetrics& metrics);

  std::shared_ptr<const nvml::Library> library_;
  const nvml::Functions& nvml_;
  nvml::Device device_;
  nvml::EventSet events_ = nullptr;
  bool lost_ = false;
  double xids_ = 0, last_xid_ = 0;
};

/// By the counter of the driver. It is read by the training thread, so once a second at most.
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
