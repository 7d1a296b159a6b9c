// CheckpointCopies: a run's checkpoints in an object store, for when the disk of its run directory is gone with its
// node.
//
// The copies of run_directory runs/digits with copy_to s3://bucket/team are below
// s3://bucket/team/runs/digits/checkpoints/IDENTITY, where other jobs have other identities, so that none is taken for
// another's. A thread of rank 0 copies what is committed, the manifest last, so that a copy is whole or is none. If
// checkpoints come faster than they can be copied, the newest one is first, then the milestones and the best one; the
// others are left out. A copy that fails is reported, and the next one tried.
//
// What the store has decides what is removed there, never what the run directory lacks, which may be new or have stayed
// behind: the job's retention, applied to the copies.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/spans.hpp"
#include "data/store/client.hpp"
#include "run/checkpoint/retention.hpp"

namespace lockstep::checkpoint {

struct CopyOutcome {
  std::int64_t step = 0;
  std::string path;        ///< of the copy
  std::int64_t bytes = 0;  ///< 0: the copy was there
  double seconds = 0;
  std::string failure;       ///< empty: the copy is whole
  std::string refused = {};  ///< an object's name that leads out of the checkpoint's folder; fetch() leaves it
};

class CheckpointCopies {
 public:
  /// On rank 0. `copy_to` is an s3:// path; `identity`: config::run_identity().
  CheckpointCopies(const std::string& copy_to, const std::string& run_directory, const std::string& identity,
                   const store::Client& client = store::client());
  /// Finishes the object that is being sent, and no more.
  ~CheckpointCopies();
  CheckpointCopies(const CheckpointCopies&) = delete;
  CheckpointCopies& operator=(const CheckpointCopies&) = delete;

  std::string place() const { return place_.text(); }
  /// Paths of the whole copies, newest first, without those that set_aside() has left. Where there are none, those of
  /// earlier versions, which wrote above the identity. `on_bytes`, here and below: called as bytes come.
  std::vector<std::string> list(const store::OnBytes& on_bytes = {}) const;
  /// How many runs of other jobs have copies beside these.
  std::size_t others(const store::OnBytes& on_bytes) const;
  /// Writes a copy that list() has named into the run directory, in place of what may be there of that step, and the
  /// best one, if the run directory has none. Throws as Client::read() does.
  CopyOutcome fetch(const std::string& path, const store::OnBytes& on_bytes) const;
  /// Copies of later steps are damaged, or of another course that the run has taken: they are no longer listed, and go
  /// as the run directory's own do that retention.hpp sets aside.
  void set_aside(std::int64_t step, const store::OnBytes& on_bytes);

  /// What is kept from now on.
  void keep(const Retention& retention);
  /// A checkpoint's path in the run directory. One that is copied already is not sent again.
  void copy(const std::string& path);
  /// The name of the checkpoint that is being sent; "": none is.
  std::string being_copied() const;
  [[nodiscard]] std::vector<CopyOutcome> finished();
  /// Waits until everything is copied; `on_bytes` is called meanwhile, if bytes have gone since. Returns why the last
  /// copy failed, or "".
  [[nodiscard]] std::string finish(const store::OnBytes& on_bytes);

 private:
  struct Listed;
  [[nodiscard]] static Listed list_at(const store::Client& client, const store::ObjectLocation& place,
                                      const store::OnBytes& on_bytes = {});
  void run();
  [[nodiscard]] CopyOutcome copy_now(const std::string& name);
  bool is_copied(const std::string& name, const store::OnBytes& on_bytes) const;
  /// Returns the bytes that it has sent: none if the object, which is among `there`, is the same.
  std::int64_t put(const std::string& name, const std::vector<store::ObjectInfo>& there,
                   const store::OnBytes& on_bytes) const;
  /// Returns its bytes.
  std::int64_t get(const store::ObjectInfo& object, const std::string& to, const store::OnBytes& on_bytes) const;
  void get_checkpoint(const store::ObjectLocation& from, CopyOutcome& outcome, const store::OnBytes& on_bytes) const;
  void prune(const store::OnBytes& on_bytes);
  store::ObjectLocation at(const std::string& name) const;

  const std::string directory_;
  const store::ObjectLocation above_, place_;  ///< without and with the identity
  const store::Client& client_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Retention retention_;
  std::vector<std::string> waiting_;  ///< names, newest first
  std::string copied_;                ///< the name of what is being copied
  bool stop_ = false;
  std::vector<CopyOutcome> outcomes_;
  std::string last_failure_;
  std::atomic<std::uint64_t> sent_{0};  ///< counts pieces of what is being copied
  std::thread thread_;
};

}  // namespace lockstep::checkpoint
