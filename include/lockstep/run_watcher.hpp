// Watching and stopping a run from outside.
#pragma once

#include <cstdint>

namespace lockstep {

/// Steps to trace, counted from 1; last 0: none.
struct ProfileSteps {
  std::int64_t first = 0, last = 0;
};

/// Who watches a run from outside. Called by the training thread of every rank.
class RunWatcher {
 public:
  enum class Wish {
    none,
    end_after_checkpoint,  ///< when the job's next checkpoint is written
    end_now,               ///< checkpoint after this step and end
  };
  virtual ~RunWatcher() = default;
  virtual void step_done(std::int64_t step) = 0;  ///< so many steps are done
  [[nodiscard]] virtual Wish wish() const = 0;    ///< one rank's is enough
};

}  // namespace lockstep
