// SIGTERM, SIGINT, SIGUSR1 and SIGHUP to the supervisor, as a descriptor to wait on.
#pragma once

#include "core/stop_count.hpp"

namespace lockstep::launch {

class StopSignals {
 public:
  /// Blocks the signals' usual effect during its lifetime; children must unblock them.
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int descriptor() const { return descriptor_; }
  /// Consumes pending signals; returns how many requests to stop they are, with the earlier ones.
  int count();
  int last() const { return last_; }  ///< number of the latest; 0: none
  /// Sleeps; true when a signal ends the sleep.
  bool sleep(double seconds);

 private:
  int descriptor_ = -1, last_ = 0;
  StopCount count_;
};

}  // namespace lockstep::launch
