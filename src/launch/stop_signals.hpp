// SIGTERM, SIGINT and SIGUSR1 to the supervisor, as a descriptor to wait on.
#pragma once

namespace lockstep::launch {

class StopSignals {
 public:
  /// Blocks the signals' usual effect during its lifetime; children must unblock them.
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  [[nodiscard]] int descriptor() const { return descriptor_; }
  /// Consumes pending signals; returns how many have arrived in total.
  int count();
  [[nodiscard]] int last() const { return last_; }  ///< number of the latest; 0: none
  /// Sleeps; true when a signal ends the sleep.
  bool sleep(double seconds);

 private:
  int descriptor_ = -1, count_ = 0, last_ = 0;
};

}  // namespace lockstep::launch
