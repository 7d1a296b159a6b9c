#include "run/train/signals.hpp"

#include <unistd.h>

#include <csignal>

#include "core/stop_count.hpp"

namespace lockstep::train {

namespace {

// A signal handler can only reach a global variable.
StopCount received;

void on_signal(int signal) {
  asked_to_stop = true;
  received.add(signal);
  if (received.requests() > 1) _exit(128 + signal);
}

void handle_all(void (*handler)(int)) {
  for (const int signal : kStopSignals) {
    if (signal != SIGHUP || !ignores_hangup()) std::signal(signal, handler);
  }
}

}  // namespace

SignalGuard::SignalGuard(bool active, bool passed_on) : active_(active) {
  if (!active_) return;
  received.reset(passed_on);
  handle_all(on_signal);
}

SignalGuard::~SignalGuard() {
  if (!active_) return;
  handle_all(SIG_DFL);
  asked_to_stop = false;
}

bool SignalGuard::asked() const {
  return active_ && received.requests() > 0;
}

}  // namespace lockstep::train
