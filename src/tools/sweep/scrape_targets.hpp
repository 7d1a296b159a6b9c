// Where Prometheus finds the ranks of all trials that run: what each trial's run has written of its own, in one file.
#pragma once

#include <string>
#include <vector>

namespace lockstep::sweep {

struct TrialTargets {
  int trial = 0;
  std::string json;  ///< its metrics/targets.json; empty: not written yet
};

/// JSON, as `file_sd_configs` reads it: all targets, with the labels `sweep` and `trial` besides their own. A trial
/// whose file is no list of targets is left out.
[[nodiscard]] std::string targets_of(const std::string& sweep, const std::vector<TrialTargets>& trials);

}  // namespace lockstep::sweep
