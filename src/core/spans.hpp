// Where the time of a step goes: named phases in seconds, summed over a run. Each recording thread has its own
// recorder; merge them at the end.
#pragma once

#include <chrono>
#include <ctime>
#include <map>
#include <string>

namespace lockstep {

using Clock = std::chrono::steady_clock;

[[nodiscard]] inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Phases {
 public:
  void add(const std::string& name, double seconds) { seconds_[name] += seconds; }
  void add(const Phases& other) {
    for (const auto& [name, seconds] : other.seconds_) seconds_[name] += seconds;
  }
  const std::map<std::string, double>& seconds() const { return seconds_; }
  void clear() { seconds_.clear(); }

 private:
  std::map<std::string, double> seconds_;
};

/// Adds the duration of its lifetime to a phase.
class PhaseTimer {
 public:
  PhaseTimer(Phases& phases, const char* name) : phases_(phases), name_(name), start_(Clock::now()) {}
  ~PhaseTimer() { phases_.add(name_, seconds_since(start_)); }
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;

 private:
  Phases& phases_;
  const char* name_;
  Clock::time_point start_;
};

/// CPU time in seconds that the calling thread has used so far: hardly affected by other load on the machine.
[[nodiscard]] inline double thread_seconds() {
  timespec time{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

}  // namespace lockstep
