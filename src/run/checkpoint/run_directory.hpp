// The run directory: which run may use it, and which checkpoint a run resumes from. Rank 0 decides and broadcasts.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "core/files.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/error.hpp"
#include "lockstep/job.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/checkpoint/files.hpp"

namespace lockstep::checkpoint {

/// Throws Error(cannot_create): the run directory, why it cannot be used, and what to try.
[[noreturn]] void cannot_use(const std::string& directory, const std::string& why);
/// The same for a call that failed with `error`; Error(infrastructure) if that may pass (core/errno_code.hpp).
[[noreturn]] void cannot_use(const std::string& directory, const std::string& what, const std::error_code& error);
[[noreturn]] void cannot_use(const std::string& directory, const std::string& what, int error);

/// Another launch or run has taken the directory: trying again would not help.
class LostDirectory : public Error {
 public:
  explicit LostDirectory(const std::string& message) : Error(ExitCode::infrastructure, message) {}
};

/// In the run directory: the launch that owns it holds a lock on this file, and has written its name into it.
inline constexpr const char* kLaunchLock = "launch.lock";

/// How long to wait for a signature that is gone, or that the disk does not give: a launch that lives signs again.
inline constexpr std::chrono::seconds kSignatureWait{30};

/// Throws LostDirectory if the directory is signed by another launch than this one, and Error(infrastructure) if it has
/// not been signed, or not been readable, for `patience`. A host that was cut off may come back when its lock has been
/// given to another; what it still does must not reach the directory. The question and the write after it are two
/// calls, so a process that is stopped in between may still write; its bytes are then those of the same step of the
/// same run, or a checkpoint that its hashes show to be damaged.
void require_launch(const std::string& directory, const std::string& launch,
                    std::chrono::milliseconds patience = kSignatureWait);

/// How long to wait for a lock that another process holds.
struct LockWait {
  std::chrono::milliseconds limit{0};
  std::function<void(const std::string&)> warn = {};  ///< called once when waiting begins; may be empty
};

/// For ranks started by a launch: the launch owns the directory, so the lock's holder is one of its own former ranks,
/// which was killed but has not ended yet (it may be in an uninterruptible write), or ran on a lost host whose lease on
/// the network file system has not expired.
inline constexpr std::chrono::seconds kFormerRankWait{120};

/// Holds a lock on <directory>/lock until it is destroyed.
class RunDirectory {
 public:
  /// Creates the directory. Throws Error(cannot_create) if it cannot be created, written to or locked, or is in use by
  /// another run; Error(infrastructure) if waiting for the lock was in vain, or the file system fails.
  explicit RunDirectory(std::string path, const LockWait& wait = {});
  /// Before something is written there: a lock file that was removed, perhaps with the directory, is made and locked
  /// again. Throws LostDirectory if another run has taken the directory since. Thread-safe.
  void require_lock();

  const std::string& path() const { return path_; }
  std::string checkpoints() const { return path_ + "/checkpoints"; }

 private:
  void lock(const LockWait& wait);
  [[nodiscard]] bool try_lock();
  std::string path_;
  std::mutex mutex_;
  std::optional<LockedFile> lock_;
};

/// Collective, once `directory` exists on rank 0's host: a token file written there must be visible on every other
/// host. Throws on every rank, naming the hosts that do not share it: UnfitHosts where others do, Error(cannot_create)
/// if rank 0's host alone has it.
void require_shared(const std::string& directory, Communicator& communicator, std::chrono::milliseconds timeout);

/// Checkpoints that a run may resume from, the first to try in front, according to `resume`:
///   auto   the run's own, newest first
///   never  none; Error(cannot_create) if the directory has checkpoints
///   PATH   that checkpoint, or as `auto` if the run has begun with it (begin_with())
[[nodiscard]] std::deque<std::string> resume_candidates(const std::string& resume, const RunDirectory& directory);

/// Whether the run has begun with the checkpoint at this path, so that --resume with it again means to go on.
[[nodiscard]] bool has_begun_with(const std::string& path, const RunDirectory& directory);

/// The run goes on from `checkpoint`, at --resume PATH: it is put among the run's own, by links where the file system
/// has them, and noted as their origin; what else is there is set aside, but for those before it if it is one of them.
/// From here on, the newest in the directory is the newest of this course. Returns its path there. `advance` is called
/// as bytes are copied.
std::string begin_with(FileSystem& files, const Checkpoint& checkpoint, const RunDirectory& directory,
                       const std::function<void()>& advance);

/// Takes candidates from the front until one has an intact manifest, and returns that one; its other files are not
/// read. `arrive` makes a path of what is taken. Damaged ones are skipped and named in `notes`. `require_same_run`
/// throws if it is of another run.
[[nodiscard]] std::optional<Checkpoint> next_candidate(std::deque<std::string>& candidates,
                                                       const std::function<std::string(const std::string&)>& arrive,
                                                       const std::function<void(const Checkpoint&)>& require_same_run,
                                                       std::vector<std::string>& notes);

/// Throws Error(configuration) of three lines, naming the differing keys, if the checkpoint belongs to another job;
/// `change_settings`: to one that differs in what cannot change between two steps, other than its length.
void require_same_job(const Checkpoint& checkpoint, const CanonicalJob& job, bool change_settings = false);

/// Sends rank 0's answer to all ranks.
[[nodiscard]] std::optional<Checkpoint> broadcast_checkpoint(std::optional<Checkpoint> checkpoint,
                                                             Communicator& communicator,
                                                             std::chrono::milliseconds timeout);

}  // namespace lockstep::checkpoint
