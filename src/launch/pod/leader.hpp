// The pod that runs the supervisor: preflight, a report on the hosts if one is wanted, `lockstep launch`, and notifying
// the others of the end. Or that report alone.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "launch/host_pool.hpp"
#include "launch/pod/preflight.hpp"
#include "launch/stop_signals.hpp"

namespace lockstep::launch {

struct LeaderCommand {
  std::vector<std::string> words;
  std::map<std::string, std::string> environment;  ///< its own, besides the pod's
};

struct LeaderOptions {
  PoolOptions pool;
  PreflightLimits preflight;
  LeaderCommand command;  ///< the supervisor's
  std::function<LeaderCommand(const Hosts&)>
      report;  ///< on these hosts; what ends with 0 lets the job begin. May be empty
  std::string termination_log;
  bool took_over = false;                ///< the job was running: those who answer go on at once
  std::function<void()> begins = [] {};  ///< called when the hosts are there
  bool once = false;                     ///< no other leader replaces this one, however it ends
  bool keeps_workers = false;            ///< workers are ended by something else
};

/// Returns the command's exit code, or the report's if that is not 0, or 75 if a signal came before it was started.
/// Signals are forwarded to it: the first ends the job with a checkpoint, a second one immediately. Throws
/// preflight()'s errors.
[[nodiscard]] int lead(const LeaderOptions& options, StopSignals& signals);

}  // namespace lockstep::launch
