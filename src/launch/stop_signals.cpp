#include "launch/stop_signals.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

#include "core/stop_count.hpp"
#include "launch/child.hpp"

namespace lockstep::launch {

namespace {

sigset_t stop_set() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kStopSignals) {
    // While it is blocked, even an ignored signal would be delivered.
    if (signal != SIGHUP || !ignores_hangup()) sigaddset(&set, signal);
  }
  return set;
}

}  // namespace

StopSignals::StopSignals() {
  count_.reset(signals_are_passed_on());
  ignore_broken_pipes();
  const sigset_t set = stop_set();
  sigprocmask(SIG_BLOCK, &set, nullptr);
  descriptor_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

StopSignals::~StopSignals() {
  (void)count();  // what has come since is answered by the end that is near; unblocked, it would end this process
  ::close(descriptor_);
  const sigset_t set = stop_set();
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

int StopSignals::count() {
  signalfd_siginfo info{};
  while (::read(descriptor_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    last_ = info.ssi_signo;
    count_.add(last_);
  }
  return count_.requests();
}

bool StopSignals::sleep(double seconds) {
  pollfd readable{descriptor_, POLLIN, 0};
  return ::poll(&readable, 1, static_cast<int>(seconds * 1000)) > 0;
}

}  // namespace lockstep::launch
