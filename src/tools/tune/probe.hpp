// A probe: a short training of the job with other settings, as a process of its own (`lockstep train`), so that one
// that runs out of memory ends nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/events.hpp"

namespace lockstep::tune {

struct ProbeSetup {
  std::string job;                     ///< a job file; empty: the embedded job
  std::vector<std::string> overrides;  ///< of the user
  int ranks = 1;
  std::string directory;  ///< where probes have their run directories
};

struct Probe {
  int code = 0;         ///< of the process: 0, or 128 + signal
  std::string message;  ///< why it failed; empty if it did not
  std::optional<events::Start> start;
  std::vector<events::Step> steps;
  std::optional<events::End> end;

  bool failed() const { return code != 0 || !end; }
  /// Median time of a step, without the first two, which also allocate and compile; NaN if there are too few.
  double step_seconds() const;
  /// Part of the time that rank 0 waited for data.
  double data_wait() const;
  /// Of the rank that had the most; 0: unknown.
  std::int64_t peak_memory() const;
};

/// What the events in a file say; other lines are ignored.
[[nodiscard]] Probe read_probe(const std::string& events);

/// Trains `steps` steps without evaluations or checkpoints; its log is <directory>/<name>.log, its run directory, if
/// `overrides` ask for a checkpoint, <directory>/<name>.
[[nodiscard]] Probe run_probe(const ProbeSetup& setup, const std::string& name, std::int64_t steps,
                              const std::vector<std::string>& overrides);

}  // namespace lockstep::tune
