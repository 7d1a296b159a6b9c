// A pod that runs ranks: it waits until the job has ended, a signal stops it, its leader is lost, or it leads itself.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/child.hpp"
#include "launch/pod/sshd.hpp"
#include "launch/pod/succession.hpp"
#include "launch/stop_signals.hpp"

namespace lockstep::launch {

/// How long something has not been seen, in seconds of any clock.
class Absence {
 public:
  /// `limit`: seconds, more than 0.
  Absence(double limit, double now) : limit_(limit), seen_(now) {}
  void seen(double now) { seen_ = now; }
  double seconds(double now) const { return now - seen_; }
  /// Often enough for the limit, but not so often that a thousand workers cause load.
  double look_every() const { return limit_ < 240 ? limit_ / 4 : 60; }

 private:
  double limit_, seen_;
};

/// Watches for a missing leader. An unused worker occupies GPUs without using them. It cannot ask Kubernetes whether a
/// leader will ever come back, so it waits for a while and then ends as after a loss: the Job counts that, and fails
/// after some of them. The time in which the leader has no node yet does not count.
class LeaderWatch {
 public:
  /// `probe`: a command that ends with 0 if the leader is there. `limit`: seconds; 0: waits forever.
  LeaderWatch(std::vector<std::string> probe, double limit);

  /// To be called repeatedly; never blocks. For how many seconds the leader has been away. A launch's processes on this
  /// host are its leader's, so the probe runs only if there are none.
  [[nodiscard]] double absent_seconds();

 private:
  void look(double now);

  std::vector<std::string> probe_;
  std::optional<Absence> absence_;
  double next_look_ = 0;
  std::optional<Child> asked_;
};

struct WorkerOptions {
  std::string ended;  ///< a file with the job's exit code, which is created when the job has ended; or with
                      ///< `unfit_host` and the reason in the next lines, when this host is left out
  double grace_seconds = 0;
  std::string leader;                ///< the leader's name
  std::vector<std::string> probe;    ///< a command that ends with 0 if the leader is there
  double leader_seconds = 0;         ///< how long it may be missing; 0: forever
  Succession* succession = nullptr;  ///< where any pod may lead; null: the first host only, which `probe` asks
};

/// Returns 0 when the job has ended, or where any pod may lead its exit code, nullopt as soon as this pod leads. After
/// a signal, no new rank is accepted, and the ranks that are here are asked for a checkpoint; then it returns 75 when
/// all are gone, after `grace_seconds`, or immediately after a second signal. Throws Error(infrastructure) if sshd
/// ends, or if the leader is away for too long, and Error(unfit_host) if this host is left out.
[[nodiscard]] std::optional<int> work(Sshd& sshd, StopSignals& signals, const WorkerOptions& options);

}  // namespace lockstep::launch
