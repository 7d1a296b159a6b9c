#include "launch/stop_signals.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>

namespace lockstep::launch {

namespace {

sigset_t stop_set() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&set, signal);
  return set;
}

}  // namespace

StopSignals::StopSignals() {
  const sigset_t set = stop_set();
  sigprocmask(SIG_BLOCK, &set, nullptr);
  descriptor_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

StopSignals::~StopSignals() {
  ::close(descriptor_);
  const sigset_t set = stop_set();
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

int StopSignals::count() {
  signalfd_siginfo info{};
  while (::read(descriptor_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    ++count_;
    last_ = static_cast<int>(info.ssi_signo);
  }
  return count_;
}

bool StopSignals::sleep(double seconds) {
  pollfd readable{descriptor_, POLLIN, 0};
  return ::poll(&readable, 1, static_cast<int>(seconds * 1000)) > 0;
}

}  // namespace lockstep::launch
