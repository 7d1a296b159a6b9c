// A doorbell: a counter in memory shared by threads or processes, on which one can sleep. After a change, a thread
// rings; a waiting thread reads the counter, checks its condition, and then sleeps unless the bell has rung meanwhile.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "core/spans.hpp"

namespace lockstep::comm {

class Doorbell {
 public:
  void ring();
  std::uint32_t rings() const { return rings_.load(std::memory_order_acquire); }
  /// Returns when the counter is no longer `seen`, or at `until` (then false). Spins for `spin`, then sleeps.
  bool wait(std::uint32_t seen, Clock::time_point until, std::chrono::microseconds spin = {});

 private:
  std::atomic<std::uint32_t> rings_{0};
  std::atomic<std::uint32_t> sleepers_{0};  ///< avoids the system call if nobody sleeps
};

}  // namespace lockstep::comm
