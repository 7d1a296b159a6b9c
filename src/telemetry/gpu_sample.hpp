// The metrics of a rank's GPU, read from NVML at each scrape.
//
// What the driver or the device does not have, or does not answer this time, is absent (NaN), not 0.
#pragma once

#include <memory>
#include <string>

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

}  // namespace lockstep::telemetry
