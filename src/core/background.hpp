// Threads that work beside those that compute.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

namespace lockstep {

/// The calling thread gives way to those that compute from now on. Not further than to 10: at 19, a thread gets next to
/// nothing while all cores are busy. A refusal costs some speed and no more.
inline void work_in_background() {
  constexpr int kNiceness = 10;
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness);
}

}  // namespace lockstep
