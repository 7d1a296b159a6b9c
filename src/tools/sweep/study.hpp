// Study: all trials of a sweep and what is known of them. Pure: it is what the journal's records add up to.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/sweep.hpp"
#include "tools/sweep/space.hpp"

namespace lockstep::sweep {

/// waiting: begun, but its training has not got to where it is to go; paused: got there, and may be trained further.
enum class TrialState : std::uint8_t { waiting, paused, done, failed };
[[nodiscard]] const char* name_of(TrialState state);

/// The objective after some steps.
struct Report {
  std::int64_t steps = 0;
  double value = 0;
};

/// Where a trial goes on from instead of beginning at step 0: a checkpoint of another one.
struct Origin {
  int trial = 0;
  std::int64_t steps = 0;
  bool operator==(const Origin&) const = default;
};

/// What a trial was trained and validated on.
struct TrialData {
  std::string samples;                         ///< hash; empty: not known
  std::map<std::string, std::string> sources;  ///< hash of what is at a path
};

struct Trial {
  int number = 0;
  Settings settings;  ///< from its first step on, which is its origin's
  std::optional<Origin> origin;
  TrialState state = TrialState::waiting;
  std::int64_t until = 0;                 ///< steps to train to; 0: to the job's end
  std::vector<Report> reports;            ///< one for each time that it got there
  std::int64_t steps = 0;                 ///< trained so far, with those of its origin
  std::map<std::string, double> metrics;  ///< of the last report: all metrics and the loss of the validation set
  std::string outcome;                    ///< of the training: "done", "stopped early"
  TrialData data;
  std::string parameters_sha256;  ///< of the trained model
  double device_seconds = 0;
  int failures = 0;                      ///< attempts that ended with an error of the trial's own
  std::string message;                   ///< of the last failure
  std::map<std::string, int> failed_on;  ///< places that failed since the last report, with the exit code
};

/// What a trial's training has come to.
struct Result {
  std::int64_t steps = 0;
  double value = 0;
  std::map<std::string, double> metrics;
  std::string outcome, parameters_sha256;
  TrialData data;
  double device_seconds = 0;
  bool finished = true;  ///< the job is at its end; false: it may be trained further
};

struct Failure {
  std::string message;
  double device_seconds = 0;
  bool final = false;      ///< it is not tried again
  int code = 0;            ///< exit code; 0: not known
  std::string place = {};  ///< where it was trained
  bool counts = true;      ///< as a failure of the trial; else of the place, or of what all trials need
};

class Study {
 public:
  explicit Study(SweepOptions options) : options_(std::move(options)) {}

  // What the journal records. The trial must exist.
  void begin(Settings settings, std::int64_t until, std::optional<Origin> origin = {});
  void promote(int trial, std::int64_t until);
  void tell(int trial, const Result& result);
  void fail(int trial, const Failure& failure);

  const SweepOptions& options() const { return options_; }
  const std::vector<Trial>& trials() const { return trials_; }
  /// The first trial that has a result on other data than `data`, though `settings` have it read the same sources, or
  /// that found something else in a source of these: it cannot be compared with what comes of these. nullptr: there is
  /// none.
  const Trial* trained_on_other(const TrialData& data, const Settings& settings) const;
  bool is_better(double value, double than) const;
  /// The one with the best last report among those that are done, or paused if none is done; of equal ones the first.
  const Trial* best() const;
  /// A trial, before it the one that it goes on from, and so on back to one that began at step 0.
  std::vector<const Trial*> ancestry(const Trial& trial) const;
  /// Whether a trial has begun and is not where it is to go.
  bool waits() const;
  /// Whether the budget lets another trial begin.
  bool may_begin() const;

 private:
  SweepOptions options_;  ///< its direction is not `automatic`
  std::vector<Trial> trials_;
};

}  // namespace lockstep::sweep
