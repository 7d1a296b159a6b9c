// The time in which a waiter itself ran. Every deadline counts it instead of the clock's: a process that was stopped
// together with those it waits for (Slurm's suspend, docker pause, SIGSTOP) has not waited for them.
#pragma once

#include <algorithm>
#include <chrono>

#include "core/spans.hpp"

namespace lockstep {

class RanTime {
 public:
  /// A waiter that looks every 0.1 s or more often, and comes back only after this, was stopped in between. A loaded
  /// machine may delay it as long; the deadline is then late, never early.
  static constexpr std::chrono::milliseconds kLongestGap{1'000};

  explicit RanTime(Clock::time_point now = Clock::now()) : last_(now) {}
  /// Call at each look.
  Clock::duration look(Clock::time_point now = Clock::now()) {
    const auto passed = now - last_;
    ran_ += std::min<Clock::duration>(passed, kLongestGap);
    stopped_ += std::max<Clock::duration>(passed - kLongestGap, Clock::duration::zero());
    last_ = now;
    return ran_;
  }
  /// Since the first look, without what was not counted.
  [[nodiscard]] double seconds() { return std::chrono::duration<double>(look()).count(); }
  /// What was not counted, up to the latest look.
  Clock::duration stopped() const { return stopped_; }

 private:
  Clock::time_point last_;
  Clock::duration ran_{0}, stopped_{0};
};

}  // namespace lockstep
