// Trains the best trial of a population again, from step 0: each leg of its history with the leg's settings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::sweep {

struct HistoryLeg {
  std::int64_t until = 0;  ///< steps done at its end; 0: the job's end
  std::string job;         ///< JSON, as a job file has it
};
struct History {
  int trial = 0;
  std::string parameters_sha256;  ///< of the trial
  std::vector<HistoryLeg> legs;
};

/// Reads best-history.json. Throws Error(data).
[[nodiscard]] History read_history(const std::string& file);

/// Runs `lockstep train` for each leg that the run directory has not got to the end of, one after the other, and says
/// whether the parameters are those of the trial. `words`: for each. Returns the exit code of the last training: 75
/// after a signal, and the same call then goes on.
int replay(const History& history, const std::string& run_directory, const std::vector<std::string>& words);

}  // namespace lockstep::sweep
