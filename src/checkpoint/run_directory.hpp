// The run directory: who may use it, and where a run goes on. Rank 0 decides and broadcasts.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/job.hpp"

namespace lockstep::checkpoint {

/// Throws Error(cannot_create): the run directory, why it cannot be used, and what to try.
[[noreturn]] void cannot_use(const std::string& directory, const std::string& why);

/// For how long a lock that somebody else holds is waited for.
struct LockWait {
  std::chrono::milliseconds limit{0};
  std::function<void(const std::string&)> warn = {};  ///< called once when it begins to wait; may be empty
};

/// Of a rank that a launch started: the launch owns the directory, so who holds the lock is one of its own former
/// ranks, which was killed and is not gone yet (it may be in a write that cannot be interrupted), or on a lost host
/// whose lease on the network file system has not expired.
inline constexpr std::chrono::seconds kFormerRankWait{120};

/// Holds a lock on <directory>/lock until destroyed.
class RunDirectory {
 public:
  /// Creates it. Throws Error(cannot_create) when it cannot be made, written to or locked, or is in use by another run;
  /// Error(infrastructure) when it was waited for in vain, or its file system fails.
  explicit RunDirectory(std::string path, const LockWait& wait = {});
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string checkpoints() const { return path_ + "/checkpoints"; }

 private:
  void lock(const LockWait& wait) const;
  std::string path_;
  int lock_ = -1;
};

/// Collective, once `directory` exists on rank 0's host: a token file written there must be seen by every other host.
/// Throws Error(cannot_create) on every rank, naming the hosts that do not share it.
void require_shared(const std::string& directory, Communicator& communicator, std::chrono::milliseconds timeout);

/// Checkpoints that a run may go on from, the one to try first in front, by the rules of `resume`:
///   auto   the run's own, newest first
///   never  none; Error(cannot_create) when the directory has checkpoints
///   PATH   that checkpoint
[[nodiscard]] std::deque<std::string> resume_candidates(const std::string& resume, const RunDirectory& directory);

/// Takes candidates from the front until the manifest of one is sound, which is returned; its files are not read. Those
/// that are damaged are passed over, and `notes` names them. Throws Error(configuration) when it is of another job.
[[nodiscard]] std::optional<Checkpoint> next_candidate(std::deque<std::string>& candidates, const CanonicalJob& job,
                                                       std::vector<std::string>& notes);

/// Throws Error(configuration) naming the differing keys when the checkpoint is of another job.
void require_same_job(const Checkpoint& checkpoint, const CanonicalJob& job);

/// Sends rank 0's answer to all ranks.
[[nodiscard]] std::optional<Checkpoint> broadcast_checkpoint(std::optional<Checkpoint> checkpoint,
                                                             Communicator& communicator,
                                                             std::chrono::milliseconds timeout);

}  // namespace lockstep::checkpoint
