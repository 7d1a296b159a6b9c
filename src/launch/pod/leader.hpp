// The pod that runs the supervisor: preflight, `lockstep launch`, and the word to the others that all is over.
#pragma once

#include <string>
#include <vector>

#include "launch/host_pool.hpp"
#include "launch/pod/preflight.hpp"
#include "launch/stop_signals.hpp"

namespace lockstep::launch {

struct LeaderOptions {
  PoolOptions pool;
  PreflightLimits preflight;
  std::vector<std::string> command;  ///< the supervisor's
  std::string termination_log;
};

/// Returns the supervisor's exit code, 75 when a signal came before it was started. A signal is passed on to it, so
/// that the first one ends the job with a checkpoint and a second one at once. Throws what preflight() throws.
[[nodiscard]] int lead(const LeaderOptions& options, StopSignals& signals);

}  // namespace lockstep::launch
