// Time that a thread has spent computing: what else runs on the machine hardly changes it.
#pragma once

#include <ctime>

namespace lockstep {

/// Seconds of the processor that the calling thread has used so far.
[[nodiscard]] inline double thread_seconds() {
  timespec time{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace lockstep
