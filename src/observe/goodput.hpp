// Goodput: where the time of a run has gone since its first start, over all its restarts, as rank 0 sees it. The same
// parts as `lockstep bench goodput` predicts.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/events.hpp"

namespace lockstep::observe {

/// Seconds in which rank 0 did not compute, since training began.
struct Waits {
  double checkpoint = 0, data = 0, peers = 0;
};

class Goodput {
 public:
  /// Goes on from what events.jsonl of the run directory says of earlier attempts, if there is such a file ("": none).
  /// `now`: Unix time, as everywhere here. The time since the last sign of life of an attempt that did not end belongs
  /// to the restart, and so do the steps that it had not finished; a pause after an end does not count.
  Goodput(const std::string& run_directory, double now);

  /// The set-up is over.
  void training_begins(double now);
  /// After each step, in order. What is between two calls and no wait is useful, evaluations included, or repeated if
  /// an earlier attempt had done this step.
  void step_done(std::int64_t step, const Waits& waits, double now);

  const events::Goodput& seconds() const { return sums_; }
  /// Whether it is time to note the seconds: an attempt that dies says no more than its last note.
  bool is_due(double now) const;
  void noted(double now) { noted_ = now; }

 private:
  void read(const std::string& path);

  events::Goodput sums_;
  std::int64_t furthest_ = 0;  ///< step that an earlier attempt had done
  double mark_ = 0;            ///< until then all time is counted
  Waits waits_;                ///< at `mark_`
  double noted_ = 0;
};

}  // namespace lockstep::observe
