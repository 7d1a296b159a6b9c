// A pod that runs ranks: it waits until the job has ended, a signal stops it, or it has no leader any more.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/child.hpp"
#include "launch/pod/sshd.hpp"
#include "launch/stop_signals.hpp"

namespace lockstep::launch {

/// How long something has not been seen. Seconds of any clock; asks nobody by itself.
class Absence {
 public:
  /// `limit`: seconds, more than 0.
  Absence(double limit, double now) : limit_(limit), seen_(now) {}
  void seen(double now) { seen_ = now; }
  [[nodiscard]] bool over(double now) const { return now - seen_ > limit_; }
  /// Often enough for the limit, and not so often that a thousand workers are a burden.
  [[nodiscard]] double look_every() const { return limit_ < 240 ? limit_ / 4 : 60; }

 private:
  double limit_, seen_;
};

/// How long a worker's leader has been missing. An unused worker holds GPUs without using them. It cannot ask
/// Kubernetes whether a leader will ever come again, so it waits for a while and then ends as after a loss: the Job
/// counts that, and fails after some of them.
class LeaderWatch {
 public:
  /// `probe`: a command that ends with 0 when the leader is there. `limit`: seconds; 0 never ends the waiting.
  LeaderWatch(std::vector<std::string> probe, double limit);

  /// To be called again and again; never blocks. True once the leader was away for too long. A launch's processes on
  /// this host are its leader's, so it is asked only where there are none.
  [[nodiscard]] bool lost();

 private:
  void look(double now);

  std::vector<std::string> probe_;
  std::optional<Absence> absence_;
  double next_look_ = 0;
  std::optional<Child> asked_;
};

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
