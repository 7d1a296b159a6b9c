// Watches a run from outside: its progress, a request to end it, and which steps to trace.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

/// When a run is to end before its last step.
enum class StopRequest : std::uint8_t {
  none,
  after_checkpoint,  ///< when the job's next checkpoint is written
  now,               ///< give up an evaluation, checkpoint after this step and end
};

/// Follows a run's progress and may interrupt it in a way that it can resume from. Called by the training thread of
/// every rank: at each step, and about twice a second while ranks wait for each other's evaluation or files.
class RunWatcher {
 public:
  virtual ~RunWatcher() = default;
  virtual void step_done(std::int64_t step) = 0;  ///< `step`: steps done
  virtual StopRequest stop_request() const = 0;   ///< a request on one rank is enough
  /// The launch that started this rank, as it signs the run directory; empty: none. Called by any thread.
  virtual std::string launch() const { return {}; }
};

/// Steps to trace, counted from 1 as in the run's reports; last 0: none.
struct ProfileSteps {
  std::int64_t first = 0, last = 0;
};

}  // namespace lockstep
