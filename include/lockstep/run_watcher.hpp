// Watching a run from outside of it: how far it is, a request to end it, and a timeline of some of its steps.
#pragma once

#include <cstdint>

namespace lockstep {

/// When a run is to end before its last step.
enum class StopRequest : std::uint8_t {
  none,
  after_checkpoint,  ///< when the job's next checkpoint is written
  now,               ///< checkpoint after this step and end
};

/// Who watches a run's progress and may interrupt it, so that it can be resumed. Called by the training thread of every
/// rank.
class RunWatcher {
 public:
  virtual ~RunWatcher() = default;
  virtual void step_done(std::int64_t step) = 0;               ///< so many steps are done
  [[nodiscard]] virtual StopRequest stop_request() const = 0;  ///< one rank's is enough
};

/// Steps to trace, counted from 1 as the run reports them; last 0: none.
struct ProfileSteps {
  std::int64_t first = 0, last = 0;
};

}  // namespace lockstep
