// The files that a launch writes into the run directory:
//
//   job.yaml                      the job with every default filled in
//   launch.lock                   held by the launch, and signed by it
//   events.jsonl                  the events of every attempt, one JSON object a line, with its time
//   logs/attempt-<k>/rank-<n>.log what a rank printed; rank-<n>.json: its flight recorder, after a hang or an error
//   logs/attempt-<k>/mpirun.log   what mpirun printed
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/files.hpp"
#include "lockstep/events.hpp"
#include "lockstep/job.hpp"
#include "observe/telemetry/console.hpp"
#include "observe/telemetry/step_thinning.hpp"

namespace lockstep::launch {

/// Lines are written by a separate thread: a shared file system may block for a minute, during which the supervisor
/// must not miss heartbeats. Their order is kept, and all are written before the record is destroyed. It also makes
/// again what was removed of these files, and signs the directory again. What people or programs see of them goes
/// through a Console, which the record does not wait for.
class RunRecord {
 public:
  /// Locks the directory against a second launch, and signs it with `launch`, which no other launch is called:
  /// Error(cannot_create) if another one holds it for `lock_seconds`. `json`: lines also go to stdout; else to stderr,
  /// as text. `every`: of the job's telemetry.
  RunRecord(const std::string& run_directory, const std::string& job, const std::string& launch, bool json,
            double lock_seconds = 0, std::optional<Span> every = {});
  ~RunRecord();
  RunRecord(const RunRecord&) = delete;
  RunRecord& operator=(const RunRecord&) = delete;

  /// A line made by telemetry::event_line().
  void line(const std::string& line);
  void event(const events::Event& event);
  void warn(const std::string& message);
  /// Waits until all lines so far are in the file.
  void flush();
  /// Before something else is printed: waits for what reads the lines so far, as Console::finish() does.
  void settle();
  /// The end: waits for what reads the JSON lines, as Console::finish() does. Throws Error(infrastructure) if it has
  /// not taken them all.
  void finish_printing();
  /// Throws Error(infrastructure) if another launch has signed the directory since: the file system took this one's
  /// host for lost.
  void require_own() const;
  /// Folder of the next attempt; numbers continue where an earlier launch stopped. Throws as cannot_use() does.
  [[nodiscard]] std::string next_attempt();
  /// Whether an earlier launch has begun this very job here.
  bool had_same_job() const { return had_same_job_; }
  int attempt() const { return attempt_; }

 private:
  void write(std::string lines);
  void write_lines();
  void make_files();
  void keep_signature();
  std::string directory_, launch_, job_;
  std::unique_ptr<LockedFile> lock_;  ///< of the writer, once that runs
  Descriptor events_;                 ///< the same
  int attempt_ = 0;
  bool had_same_job_ = false;
  telemetry::ThinnedLines lines_;
  std::unique_ptr<telemetry::Console> console_;
  std::unique_ptr<events::Sink> people_;  ///< null: JSON
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> to_write_;
  bool ends_ = false, writes_ = false;
  std::thread writer_;
};

}  // namespace lockstep::launch
