// A pod that runs ranks: it waits until the job has ended, a signal stops it, or it has no leader any more.
#pragma once

#include <string>
#include <vector>

#include "launch/pod/sshd.hpp"
#include "launch/stop_signals.hpp"

namespace lockstep::launch {

struct WorkerOptions {
  std::string ended;  ///< a file that appears when the job has ended
  double grace_seconds = 0;
  std::string leader;              ///< its name
  std::vector<std::string> probe;  ///< ends with 0 when the leader is there
  double leader_seconds = 0;       ///< that it may be missing; 0: forever
};

/// Returns 0 when the job has ended. After a signal no new rank is accepted, and those that are here are asked for a
/// checkpoint; then it returns 75 when all are gone, after `grace_seconds`, or immediately after a second signal.
/// Throws Error(infrastructure) when sshd ends, or the leader was away for too long.
[[nodiscard]] int work(Sshd& sshd, StopSignals& signals, const WorkerOptions& options);

}  // namespace lockstep::launch
