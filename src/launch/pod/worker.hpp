// A pod that takes ranks: it waits until it is told that the job has ended, or to leave, or has no leader any more.
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
  double leader_seconds = 0;       ///< that it may be away; 0: for ever
};

/// 0 when the job has ended. After a signal no new rank is let in, and those that are here are told to checkpoint; 75
/// when all are gone, after `grace_seconds`, or at once after a second signal. Throws Error(infrastructure) when sshd
/// ends, or the leader was away for too long.
[[nodiscard]] int work(Sshd& sshd, StopSignals& signals, const WorkerOptions& options);

}  // namespace lockstep::launch
