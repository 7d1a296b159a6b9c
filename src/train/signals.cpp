#include "train/signals.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>

namespace lockstep::train {

namespace {

// A signal handler can only reach a global variable.
std::atomic<int> received{0};
constexpr std::array kSignals = {SIGTERM, SIGINT, SIGUSR1};

void on_signal(int signal) {
  if (received.fetch_add(1) > 0) _exit(128 + signal);
}

}  // namespace

SignalGuard::SignalGuard(bool active) : active_(active) {
  if (!active_) return;
  received = 0;
  for (const int signal : kSignals) std::signal(signal, on_signal);
}

SignalGuard::~SignalGuard() {
  if (!active_) return;
  for (const int signal : kSignals) std::signal(signal, SIG_DFL);
}

bool SignalGuard::asked() const {
  return active_ && received.load() > 0;
}

}  // namespace lockstep::train
