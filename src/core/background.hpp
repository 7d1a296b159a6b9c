// Threads that work beside those that compute.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

namespace lockstep {

/// Lowers the calling thread's priority below that of the computing threads, from now on. Not below niceness 10: at 19
/// a thread gets next to no time while all cores are busy. A failure costs only speed.
inline void work_in_background() {
  constexpr int kNiceness = 10;
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness);
}

}  // namespace lockstep
