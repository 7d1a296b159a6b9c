// How much longer a step takes while some devices are slow or missing.
//
// The batch is always cut into the same micro-batches. A step ends when the last micro-batch is computed, and no
// micro-batch is divided: with few micro-batches per device, a slightly slow device costs the time of a whole
// micro-batch. "Balanced" means that micro-batches move to where they are done first (balance/); otherwise all devices
// compute equally many, and all wait for the slowest.
#pragma once

namespace lockstep::bench {

struct StepLoad {
  int devices = 1;                 ///< of the whole job; a step on all of them, at equal speed, takes 1
  int active = 1;                  ///< devices in use, at least one
  int slow = 0;                    ///< among the active ones
  double slow_factor = 1;          ///< how many times as long a slow device takes, at least 1
  int micro_batches_a_device = 0;  ///< when all devices are active; 0: arbitrarily fine
  bool balanced = true;
};

/// In units of a step on the whole job.
[[nodiscard]] double step_time(const StepLoad& load);

}  // namespace lockstep::bench
