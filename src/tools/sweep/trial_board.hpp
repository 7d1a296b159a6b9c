// TensorBoard's page of hyper-parameters for a sweep: a folder with the experiment, and below it a run for each trial,
// with its settings, the values by which it was compared, its last metrics and how it ended.
#pragma once

#include <string>
#include <vector>

#include "tools/sweep/study.hpp"

namespace lockstep::sweep {

class TrialBoard {
 public:
  /// `metrics`: of the job. Writes the experiment. Throws Error(cannot_create).
  TrialBoard(std::string folder, const SweepOptions& options, const std::vector<std::string>& metrics);
  /// Replaces what is shown of a trial. Throws Error(cannot_create).
  void show(const Trial& trial) const;

 private:
  std::string folder_;
  const SweepOptions& options_;
};

}  // namespace lockstep::sweep
