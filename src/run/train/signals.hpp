// Signal handling: the first SIGTERM, SIGINT, SIGUSR1 or SIGHUP gives up an evaluation and requests a checkpoint at
// the next step boundary, the second exits at once.
#pragma once

namespace lockstep::train {

/// Installs handlers for its lifetime; only one may exist at a time.
class SignalGuard {
 public:
  /// `passed_on`: see StopCount.
  explicit SignalGuard(bool active, bool passed_on = false);
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
  bool asked() const;

 private:
  bool active_;
};

}  // namespace lockstep::train
