// The results of a sweep, as files for people, spreadsheets and programs: trials.csv, trials.json, best.yaml. Each is
// replaced as a whole.
#pragma once

#include <string>

#include "config/sweep.hpp"
#include "sweep/study.hpp"

namespace lockstep::sweep {

/// A row for each trial; first what became of it, then its parameters, then its metrics.
[[nodiscard]] std::string trials_csv(const Study& study);
[[nodiscard]] std::string trials_json(const Study& study);

/// The best trial's job with every default, ready to train; run directory and name are of its own. `job`: its canonical
/// form.
[[nodiscard]] std::string best_yaml(const Study& study, const Trial& best, const std::string& job);

/// The run directory of a trial.
[[nodiscard]] std::string trial_directory(const std::string& sweep_directory, int trial);

}  // namespace lockstep::sweep
