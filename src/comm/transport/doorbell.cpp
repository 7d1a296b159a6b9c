#include "comm/transport/doorbell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

namespace lockstep::comm {

namespace {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "the counter is shared between processes");

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Not FUTEX_PRIVATE: the counter may be in memory shared by several processes.
void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* timeout) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

}  // namespace

void Doorbell::ring() {
  rings_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) futex(rings_, FUTEX_WAKE, INT_MAX, nullptr);
}

bool Doorbell::wait(std::uint32_t seen, Clock::time_point until, std::chrono::microseconds spin) {
  const auto spin_until = std::min(until, Clock::now() + spin);
  do {
    for (int i = 0; i < 16; ++i) {
      if (rings() != seen) return true;
      pause();
    }
  } while (Clock::now() < spin_until);

  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  bool rung = false;
  while (!(rung = rings() != seen)) {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(until - Clock::now()).count();
    if (left <= 0) break;
    const timespec timeout{left / 1'000'000'000, left % 1'000'000'000};
    futex(rings_, FUTEX_WAIT, seen, &timeout);
  }
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  return rung;
}

}  // namespace lockstep::comm
