// The wait before the first attempt: names of new pods resolve late, and their sshds start at any time.
#pragma once

#include <functional>

#include "launch/host_pool.hpp"

namespace lockstep::launch {

struct PreflightLimits {
  int hosts = 0;               ///< number that must answer, including this one; 0: all
  double seconds = 300;        ///< time limit for these
  double settle_seconds = 10;  ///< for the others after that; hosts that are later still join at a checkpoint
  bool required = true;        ///< else the job, which has had them all before, goes on without those that are missing
};

/// Waits until the hosts answer; `stop` is polled, and ends the wait with false. Throws Error(infrastructure) that
/// names the missing hosts and what ssh prints.
[[nodiscard]] bool preflight(HostPool& pool, const PreflightLimits& limits, const std::function<bool()>& stop);

}  // namespace lockstep::launch
