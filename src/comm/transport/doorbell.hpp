// A doorbell: a counter in memory shared by threads or processes, on which one can sleep. Who changed something
// rings; who waits reads the counter, looks at what it waits for, and then sleeps unless it was rung meanwhile.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "core/spans.hpp"

namespace lockstep::comm {

class Doorbell {
 public:
  void ring();
  [[nodiscard]] std::uint32_t rings() const { return rings_.load(std::memory_order_acquire); }
  /// Returns when the counter is no longer `seen`, or at `until` (then false). Spins for `spin`, then sleeps.
  bool wait(std::uint32_t seen, Clock::time_point until, std::chrono::microseconds spin = {});

 private:
  std::atomic<std::uint32_t> rings_{0};
  std::atomic<std::uint32_t> sleepers_{0};  ///< no system call for a ring that nobody hears
};

}  // namespace lockstep::comm
