// Signals as the contract has them: the first SIGTERM, SIGINT or SIGUSR1 asks for a checkpoint at the next step
// boundary, the second leaves at once.
#pragma once

namespace lockstep::train {

/// Installs handlers while it lives; one at a time.
class SignalGuard {
 public:
  explicit SignalGuard(bool active);
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
  [[nodiscard]] bool asked() const;

 private:
  bool active_;
};

}  // namespace lockstep::train
