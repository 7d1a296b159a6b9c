#include "train/signals.hpp"

#include <unistd.h>

#include <csignal>

#include "core/stop_count.hpp"

namespace lockstep::train {

namespace {

void on_signal(int signal) {
  stop_requests.add(signal);
  if (stop_requests.requests() > 1) _exit(128 + signal);
}

void handle_all(void (*handler)(int)) {
  for (const int signal : kStopSignals) {
    if (signal != SIGHUP || !ignores_hangup()) std::signal(signal, handler);
  }
}

}  // namespace

SignalGuard::SignalGuard(bool active, bool passed_on) : active_(active) {
  if (!active_) return;
  stop_requests.reset(passed_on);
  handle_all(on_signal);
}

SignalGuard::~SignalGuard() {
  if (active_) handle_all(SIG_DFL);
}

bool SignalGuard::asked() const {
  return active_ && stop_requests.requests() > 0;
}

}  // namespace lockstep::train
