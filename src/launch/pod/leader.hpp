// The pod that runs the supervisor: preflight, `lockstep launch`, and the word to the others that all is over. Or, in
// its place, a report on the hosts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/host_pool.hpp"
#include "launch/pod/preflight.hpp"
#include "launch/stop_signals.hpp"

namespace lockstep::launch {

struct LeaderOptions {
  PoolOptions pool;
  PreflightLimits preflight;
  std::vector<std::string> command;                ///< the supervisor's
  std::map<std::string, std::string> environment;  ///< its own, besides the pod's
  std::string termination_log;
  bool once = false;           ///< nobody takes this leader's place, however it ends
  bool keeps_workers = false;  ///< they are ended by who made them
};

/// Returns the command's exit code, 75 when a signal came before it was started. A signal is passed on to it, so
/// that the first one ends the job with a checkpoint and a second one at once. Throws what preflight() throws.
[[nodiscard]] int lead(const LeaderOptions& options, StopSignals& signals);

}  // namespace lockstep::launch
