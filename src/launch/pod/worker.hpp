// A pod that takes ranks: it waits until it is told that the job has ended, or to leave.
#pragma once

#include <string>

#include "launch/pod/sshd.hpp"
#include "launch/stop_signals.hpp"

namespace lockstep::launch {

/// `ended`: a file that appears when the job has ended: 0. After a signal no new rank is let in, and those that are
/// here are told to checkpoint; 75 when all are gone, after `grace_seconds`, or at once after a second signal. Throws
/// Error(infrastructure) when sshd ends.
[[nodiscard]] int work(Sshd& sshd, StopSignals& signals, const std::string& ended, double grace_seconds);

}  // namespace lockstep::launch
