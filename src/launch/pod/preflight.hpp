// The wait before the first attempt: a pod may wait for a node for hours, and its sshd starts at any time.
#pragma once

#include <functional>

#include "launch/host_pool.hpp"

namespace lockstep::launch {

struct PreflightLimits {
  int hosts = 0;               ///< number that must answer, including this one; 0: all
  double seconds = 300;        ///< how long one that runs may stay silent
  double settle_seconds = 10;  ///< for the others after that; hosts that are later still join at a checkpoint
  bool required = true;        ///< else the job, which has had them all before, goes on without those that are missing
  double pending_seconds = 0;  ///< how long pods may wait for their nodes; 0: forever
};

/// Waits until the hosts answer; `stop` is polled, and ends the wait with false. `runs` says whether a host does; one
/// that does not has all the time it needs. Throws Error(infrastructure) that names the missing hosts and what ssh
/// prints.
[[nodiscard]] bool preflight(HostPool& pool, const PreflightLimits& limits,
                             const std::function<bool(const std::string& host)>& runs,
                             const std::function<bool()>& stop);

}  // namespace lockstep::launch
