// How often a process has been asked to stop. The first request is for a checkpoint, the second for an immediate end.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>

namespace lockstep {

/// The signals that ask a training to stop. A closed terminal (SIGHUP) is no reason to lose steps.
inline constexpr std::array kStopSignals = {SIGTERM, SIGINT, SIGUSR1, SIGHUP};

/// nohup: whoever started this process wants it to survive its terminal.
[[nodiscard]] inline bool ignores_hangup() {
  struct sigaction now {};
  return sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

/// A training outlives the reader of what it prints.
inline void ignore_broken_pipes() {
  std::signal(SIGPIPE, SIG_IGN);
}

class StopCount {
 public:
  /// `passed_on`: the process that started this one passes each stop signal on as SIGUSR1. A service manager signals
  /// both at once, which is one request and not two; so SIGUSR1 is counted apart from the others.
  void reset(bool passed_on) {
    passed_on_ = passed_on;
    from_parent_ = others_ = 0;
  }
  /// Safe in a signal handler.
  void add(int signal) {
    if (signal != SIGUSR1) {
      others_.fetch_add(1);
      return;
    }
    // The kernel tells of a killed parent once for each of its threads.
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    const std::int64_t now = time.tv_sec * 1000 + time.tv_nsec / 1'000'000, last = last_.exchange(now);
    if (!passed_on_ || from_parent_ == 0 || now - last >= 1000) from_parent_.fetch_add(1);
  }
  int requests() const {
    const int from_parent = from_parent_, others = others_;
    return passed_on_ ? std::max(from_parent, others) : from_parent + others;
  }

 private:
  std::atomic<bool> passed_on_{false};
  std::atomic<int> from_parent_{0}, others_{0};
  std::atomic<std::int64_t> last_{0};  ///< SIGUSR1, in milliseconds
};

/// Whether this process has been asked to stop: what is outside is no longer waited for. Global, for signal handlers.
inline std::atomic<bool> asked_to_stop{false};

}  // namespace lockstep
