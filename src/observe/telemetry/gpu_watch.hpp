// Why is a rank's GPU slow? Judged from samples of what the driver reports and of what the rank itself did.
//
// Utilization alone says little: it is the fraction of time in which any kernel of any process ran, including one that
// waits in a collective. Compared with the rank's own work, and together with power and clocks, it says more:
//
//   throttled  the clock is throttled in most samples, and a micro-batch takes longer than before
//   co-tenant  kernels run while this rank has none there; or a micro-batch takes longer than before although no clock
//   is
//              throttled and as much power is used: another process is using the GPU
//
// This controls nothing: the micro-batch assignment follows measured seconds, which this explains.
#pragma once

#include <cstddef>
#include <deque>

namespace lockstep::telemetry {

enum class GpuCause { none, co_tenant, throttled };

/// One sample of the GPU and of its rank. Unknown numbers are NaN.
struct GpuLook {
  double utilization = 0;          ///< fraction of time with a kernel, 0 to 1
  double own = 0;                  ///< fraction of the time since the previous sample in which this rank had work there
  double watts = 0;                ///< power draw
  double micro_batch_seconds = 0;  ///< compute seconds of a micro-batch
  bool throttled = false;          ///< by power, heat or hardware
};

class GpuWatch {
 public:
  /// Samples that must agree before a cause is reported.
  static constexpr std::size_t kWindow = 5;

  void add(const GpuLook& look);
  GpuCause cause() const { return cause_; }

 private:
  [[nodiscard]] GpuCause judge();

  std::deque<GpuLook> looks_;
  double best_seconds_ = 0, best_watts_ = 0;  ///< of the window in which a micro-batch took least; 0: none yet
  GpuCause cause_ = GpuCause::none;
};

}  // namespace lockstep::telemetry
