// Before the first attempt: names of fresh pods resolve late, and their sshds start when they like.
#pragma once

#include <functional>

#include "launch/host_pool.hpp"

namespace lockstep::launch {

struct PreflightLimits {
  int hosts = 0;               ///< that must answer, this one included; 0: all
  double seconds = 300;        ///< for these
  double settle_seconds = 10;  ///< for the others after that; who comes later is taken in at a checkpoint
};

/// Waits until the hosts answer; `stop` is asked again and again, and ends the waiting: false. Throws
/// Error(infrastructure) that names who is missing and what ssh says.
[[nodiscard]] bool preflight(HostPool& pool, const PreflightLimits& limits, const std::function<bool()>& stop);

}  // namespace lockstep::launch
