// The results of a sweep, as files for people, spreadsheets and programs: trials.csv, trials.json, best.yaml, and of a
// population best-history.json. Each is replaced as a whole.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/sweep.hpp"
#include "tools/sweep/study.hpp"

namespace lockstep::sweep {

/// A row for each trial; first what became of it, then its parameters, then its metrics.
[[nodiscard]] std::string trials_csv(const Study& study);
[[nodiscard]] std::string trials_json(const Study& study);

/// The best trial's job with every default, ready to train; run directory and name are of its own. `job`: its canonical
/// form.
[[nodiscard]] std::string best_yaml(const Study& study, const Trial& best, const std::string& job);

/// A stretch of training with the same settings.
struct Leg {
  int trial = 0;           ///< which trained it
  std::int64_t until = 0;  ///< steps done at its end; 0: the job's end
  Settings settings;
  std::string job;  ///< in canonical form
};
/// The legs from step 0 to what a trial has come to, by which it can be trained again. `job_of` gives the canonical job
/// of settings.
[[nodiscard]] std::vector<Leg> legs_of(const Study& study, const Trial& trial,
                                       const std::function<std::string(const Settings&)>& job_of);
/// best-history.json: for `lockstep replay`.
[[nodiscard]] std::string history_json(const Study& study, const Trial& trial, const std::vector<Leg>& legs);

/// The run directory of a trial.
[[nodiscard]] std::string trial_directory(const std::string& sweep_directory, int trial);

}  // namespace lockstep::sweep
