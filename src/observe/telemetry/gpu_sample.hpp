// A rank's GPU as NVML reports it: its metrics, read at each scrape, and the energy that it uses.
//
// Values that the driver or the device does not have, or does not return this time, are absent (NaN), not 0.
#pragma once

#include <memory>
#include <string>

#include "core/spans.hpp"
#include "observe/telemetry/nvml.hpp"
#include "observe/telemetry/rank_metrics.hpp"

namespace lockstep::telemetry {

class GpuSample {
 public:
  /// `device`: see nvml::find_gpu(). Null if there is no such GPU; `problem` says why.
  [[nodiscard]] static std::unique_ptr<GpuSample> open(std::shared_ptr<const nvml::Library> library,
                                                       const std::string& device, std::string& problem);
  ~GpuSample();
  GpuSample(const GpuSample&) = delete;
  GpuSample& operator=(const GpuSample&) = delete;

  /// Sets lockstep_gpu_info. Call it before the first scrape.
  void describe(RankMetrics& metrics) const;
  /// Sets all others. Once a GPU is lost, only lockstep_gpu_lost and the XIDs remain.
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

/// The GPU's energy, from the driver's counter. It is read by the training thread, so at most once a second.
class GpuEnergy {
 public:
  /// `device`: see nvml::find_gpu(). Null if there is no such GPU, or if it has no counter.
  [[nodiscard]] static std::unique_ptr<GpuEnergy> open(std::shared_ptr<const nvml::Library> library,
                                                       const std::string& device);

  /// Energy since it was opened. A lost GPU adds nothing; if the counter restarts (the driver was reloaded), what was
  /// used since the last reading is not counted.
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
