// A sweep as its trials.json has it, for the report.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::cli {

struct RecordedTrial {
  std::int64_t number = 0, steps = 0;
  std::string state, message;
  std::optional<double> value;
  std::map<std::string, std::string> settings;                ///< as JSON
  std::optional<std::pair<std::int64_t, std::int64_t>> from;  ///< trial, step
  std::vector<std::pair<std::int64_t, double>> reports;       ///< steps, value
};

struct RecordedSweep {
  std::string name, method, metric, directory;
  bool maximize = false;
  std::optional<std::int64_t> best;
  std::vector<RecordedTrial> trials;
  std::vector<std::string> parameters;  ///< in the order in which trials have them
  double device_seconds = 0;

  bool has_copies() const {
    return std::any_of(trials.begin(), trials.end(), [](const RecordedTrial& trial) { return trial.from.has_value(); });
  }
  /// A trial and those that it comes from, itself first.
  std::vector<const RecordedTrial*> ancestry(const RecordedTrial& trial) const;
};

/// Reads trials.json. Throws Error(data) if it is unreadable.
[[nodiscard]] RecordedSweep read_sweep(const std::string& directory);

}  // namespace lockstep::cli
