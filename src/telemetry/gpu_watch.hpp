// Why is a rank's GPU slow? Told from what the driver says of it and what the rank itself did, look by look.
//
// Utilization alone says little: it is the share of time in which some kernel ran, whoever's, also one that waits in a
// collective. Held against the rank's own work, and with power and clocks beside it, it says more:
//
//   throttled  the clock is held down in most looks, and a shard takes longer than it did
//   co-tenant  kernels run while this rank has none there; or a shard takes longer than it did although no clock is
//   held
//              down and as much power is drawn as before: somebody else's work is done with it
//
// It steers nothing by itself: shares follow measured seconds. It says what the seconds come from.
#pragma once

#include <cstddef>
#include <deque>

#include "core/gpu_cause.hpp"

namespace lockstep::telemetry {

/// One look at the GPU and at the rank that has it. Numbers that are not known are NaN.
struct GpuLook {
  double utilization = 0;    ///< share of time with a kernel, 0 to 1
  double own = 0;            ///< share of the time since the look before in which this rank had work there
  double watts = 0;          ///< power draw
  double shard_seconds = 0;  ///< compute seconds of a shard
  bool throttled = false;    ///< by power, heat or hardware
};

class GpuWatch {
 public:
  /// A window of looks must agree before anything is said.
  static constexpr std::size_t kWindow = 5;

  void add(const GpuLook& look);
  [[nodiscard]] GpuCause cause() const { return cause_; }

 private:
  [[nodiscard]] GpuCause judge();

  std::deque<GpuLook> looks_;
  double best_seconds_ = 0, best_watts_ = 0;  ///< of the window in which a shard took least; 0: none yet
  GpuCause cause_ = GpuCause::none;
};

}  // namespace lockstep::telemetry
