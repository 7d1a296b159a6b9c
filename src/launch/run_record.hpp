// What a launch leaves in the run directory:
//
//   job.yaml                      the job with every default filled in
//   events.jsonl                  every event of every attempt, one JSON object a line, with its time
//   logs/attempt-<k>/rank-<n>.log what a rank printed; rank-<n>.json: its flight recorder, after a hang or an error
//   logs/attempt-<k>/mpirun.log   what mpirun printed
#pragma once

#include <memory>
#include <string>

#include "lockstep/events.hpp"
#include "lockstep/job.hpp"

namespace lockstep::launch {

class RunRecord {
 public:
  /// Locks the directory against a second launch: Error(cannot_create) when another one holds it for so long. `json`:
  /// lines also go to stdout; else people read them on stderr.
  RunRecord(const Job& job, bool json, double lock_seconds = 0);
  ~RunRecord();
  RunRecord(const RunRecord&) = delete;
  RunRecord& operator=(const RunRecord&) = delete;

  /// A line as telemetry::event_line() makes it.
  void line(const std::string& line);
  void event(const std::string& name, const telemetry::Record& record);
  void warn(const std::string& message);
  /// Folder of the next attempt; numbers go on where an earlier launch stopped.
  [[nodiscard]] std::string next_attempt();
  [[nodiscard]] int attempt() const { return attempt_; }

 private:
  std::string directory_;
  int lock_ = -1, events_ = -1;
  int attempt_ = 0;
  bool json_;
  std::unique_ptr<telemetry::Sink> people_;
};

}  // namespace lockstep::launch
