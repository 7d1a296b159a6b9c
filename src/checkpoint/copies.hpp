// CheckpointCopies: a run's checkpoints in an object store, for when the disk of its run directory is gone with its
// node.
//
// An object is named as its file is: run_directory runs/digits with copy_to s3://bucket/team has its checkpoints below
// s3://bucket/team/runs/digits/checkpoints. A thread of rank 0 copies what is committed, the manifest last, so that a
// copy is whole or is none; if checkpoints come faster than they can be copied, it is the newest one that is. What the
// run directory keeps no longer is removed there, too. A copy that fails is reported, and the next one tried.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/spans.hpp"
#include "store/client.hpp"

namespace lockstep::checkpoint {

struct CopyOutcome {
  std::int64_t step = 0;
  std::string path;        ///< of the copy
  std::int64_t bytes = 0;  ///< 0: the copy was there
  double seconds = 0;
  std::string failure;  ///< empty: the copy is whole
};

class CheckpointCopies {
 public:
  /// On rank 0. `copy_to` is an s3:// path.
  CheckpointCopies(const std::string& copy_to, const std::string& run_directory,
                   const store::Client& client = store::client());
  /// Finishes the object that is being sent, and no more.
  ~CheckpointCopies();
  CheckpointCopies(const CheckpointCopies&) = delete;
  CheckpointCopies& operator=(const CheckpointCopies&) = delete;

  [[nodiscard]] std::string place() const { return place_.text(); }
  /// Names of the whole copies, newest first.
  [[nodiscard]] std::vector<std::string> list() const;
  /// Writes the newest copy, and the best one, into the run directory, which has no checkpoint; returns
  /// what the newest one is; nothing if there is none. `on_bytes` is called as bytes come. Throws as Client::read()
  /// does.
  [[nodiscard]] std::optional<CopyOutcome> restore(const store::OnBytes& on_bytes) const;

  /// A checkpoint's path in the run directory. One that is copied already is not sent again.
  void copy(const std::string& path);
  [[nodiscard]] std::vector<CopyOutcome> finished();
  /// Waits until everything is copied; `on_bytes` is called meanwhile, if bytes have gone since. Returns why the last
  /// copy failed, or "".
  [[nodiscard]] std::string finish(const store::OnBytes& on_bytes);

 private:
  void run();
  [[nodiscard]] CopyOutcome copy_now(const std::string& path);
  [[nodiscard]] bool is_copied(const std::string& name) const;
  void put(const std::string& name, CopyOutcome& outcome);
  /// Returns its bytes.
  [[nodiscard]] std::int64_t get(const store::ObjectInfo& object, const store::OnBytes& on_bytes) const;
  void prune();
  [[nodiscard]] store::Location at(const std::string& name) const;

  const std::string directory_;
  const store::Location place_;
  const store::Client& client_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string next_;  ///< to be copied
  bool busy_ = false, stop_ = false;
  std::vector<CopyOutcome> outcomes_;
  std::string last_failure_;
  std::atomic<std::uint64_t> sent_{0};  ///< counts pieces of what is being copied
  std::thread thread_;
};

}  // namespace lockstep::checkpoint
