// CheckpointWriter: saves a run's state while the run continues.
//
// begin() copies this rank's share of the tensors at a step boundary, after other ranks have sent what it lacks, and
// returns; a thread of its own hashes and writes the files. When all ranks have reported that their files are safe,
// rank 0's thread writes the manifest: that is the commit. Only one checkpoint is under way at a time on all ranks
// together; begin() waits for the previous one (back-pressure), and all ranks wait together, so that none of them
// misses another's deadline.
//
// A failure (a full, read-only or vanished directory) never throws from begin(): finished() reports it, partially
// written files are removed, and the next begin() tries again.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/trace.hpp"
#include "lockstep/communicator.hpp"
#include "run/checkpoint/files.hpp"
#include "run/checkpoint/layout.hpp"
#include "run/checkpoint/reports.hpp"
#include "run/checkpoint/retention.hpp"

namespace lockstep::checkpoint {

/// finish()'s result if a disk does not answer; also the reason why begin() returned false.
inline constexpr const char* kNoAnswer = "the disk does not answer";

struct WriterOptions {
  std::string directory;  ///< <run>/checkpoints, the same on every rank
  Retention retention;
  std::string best;    ///< name of the best checkpoint so far, or ""
  std::string newest;  ///< path of the newest committed checkpoint, or ""
  std::int64_t part_bytes = kPartBytes;
  std::chrono::milliseconds timeout{60'000};  ///< for the ranks' agreement in begin()
  /// In which no rank has written another file: after twice as long begin() waits no longer, after six times as long
  /// the checkpoint has failed.
  std::chrono::milliseconds deadline{600'000};
  std::chrono::milliseconds after_error{5'000};  ///< the deadline while the run is being torn down
  std::function<void()> may_write = [] {};       ///< throws LostDirectory if another launch or run owns it by now
  /// The name of a checkpoint that is read just now, and stays; "": of none.
  std::function<std::string()> pinned = [] { return std::string(); };
};

/// The outcome of a checkpoint; on rank 0.
struct CheckpointOutcome {
  std::int64_t step = 0;
  std::string path;
  bool best = false;
  std::string failure;         ///< empty: committed
  std::string newest;          ///< the newest committed one, or ""
  double seconds = 0;          ///< from begin() to the commit
  double blocked_seconds = 0;  ///< the part of it during which training waited
  std::int64_t bytes = 0;      ///< of all ranks
  std::string warning;         ///< committed, but older ones could not be removed
};

class CheckpointWriter {
 public:
  /// The tensors must outlive the writer. The same on every rank.
  CheckpointWriter(Communicator& communicator, std::vector<TensorSource> tensors, WriterOptions options,
                   FileSystem& files = real_files());
  /// Waits for what is under way; for other ranks only `after_error` long.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Collective. Returns false, and skips this checkpoint, if some rank's disk has not answered for twice the
  /// `deadline`.
  [[nodiscard]] bool begin(const Progress& progress, bool best);

  /// Checkpoints that begin from now on are recorded as spans; null: not recorded.
  void trace(std::shared_ptr<TraceRecorder> recorder) { trace_ = std::move(recorder); }

  /// Outcomes since the last call; empty on ranks other than 0. Never waits.
  [[nodiscard]] std::vector<CheckpointOutcome> finished();

  /// Collective: waits until nothing is under way on any rank. Returns the failure of the last checkpoint, the same on
  /// every rank; empty if it was committed, or there was none; kNoAnswer if a rank's disk has not answered for twice
  /// the `deadline`.
  [[nodiscard]] std::string finish();
  /// After finish(): whether the failure is for good, since another launch or run has taken the directory. The same on
  /// every rank.
  bool has_lost_directory() const { return lost_; }

  /// Bytes that this rank writes for one checkpoint.
  std::int64_t own_bytes() const { return buffer_.size(); }

 private:
  struct Task {
    Progress progress;
    bool best = false;
    Clock::time_point start;
    double blocked_seconds = 0;
    std::shared_ptr<TraceRecorder> trace;
  };

  void copy(std::int64_t step);
  void exchange(std::int64_t step);  // receives what writing ranks lack
  std::span<const std::byte> own_bytes(const PartPiece& piece, const PartPiece::Source& source) const;
  void run();
  void work(const Task& task);
  [[nodiscard]] static TraceScope span_of(const Task& task, const char* name);
  [[nodiscard]] WriteReport write_own(const Task& task, const std::string& directory);
  [[nodiscard]] CheckpointOutcome conclude(const Task& task, WriteReport own);
  void commit(const Task& task, const std::vector<WriteReport>& reports, const std::string& directory);
  [[nodiscard]] bool all_idle(std::int64_t step);
  [[nodiscard]] bool idle_within(std::chrono::milliseconds timeout);
  bool leads() const { return communicator_.rank() == 0; }

  Communicator& communicator_;
  std::vector<TensorSource> tensors_;
  WriterOptions options_;
  FileSystem& files_;
  std::vector<Part> parts_;  // of all ranks
  AlignedBytes buffer_;      // this rank's files, one after another; belongs to the thread while a task is under way
  WriteReports reports_;
  std::shared_ptr<TraceRecorder> trace_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Task> task_;  // under way
  std::vector<CheckpointOutcome> outcomes_;
  std::string last_failure_;
  std::atomic<bool> lost_{false};
  std::atomic<std::uint64_t> written_{0};  // files, by the thread
  bool stop_ = false;
  std::thread thread_;  // on rank 0, and on ranks that write files
};

}  // namespace lockstep::checkpoint
