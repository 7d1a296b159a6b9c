#include "launch/pod/init.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <initializer_list>
#include <sstream>
#include <thread>

#include "core/spans.hpp"
#include "core/whole_file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::launch {

namespace {

constexpr std::chrono::milliseconds kReapPoll{10};
constexpr std::chrono::seconds kReapPatience{5};  ///< a process in uninterruptible sleep dies when its disk answers

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGHUP, SIGCHLD}) sigaddset(&set, signal);
  return set;
}

// Reaps all processes that have ended; returns the exit code of `worker` if it is among them.
std::optional<int> reap(pid_t worker) {
  std::optional<int> code;
  int status = 0;
  for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (ended == worker) code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return code;
}

bool has_children() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

// For process 1, the kernel does this. Children of killed processes become ours, so it takes several rounds.
void end_the_rest() {
  const auto end = Clock::now() + kReapPatience;
  while (has_children() && Clock::now() < end) {
    std::istringstream children(read_kernel_file(fmt::format("/proc/self/task/{}/children", getpid())));
    for (pid_t pid = 0; children >> pid;) kill(pid, SIGKILL);
    std::this_thread::sleep_for(kReapPoll);
    (void)reap(0);
  }
}

int serve(pid_t worker, const sigset_t& signals) {
  while (true) {
    siginfo_t info{};
    const int signal = sigwaitinfo(&signals, &info);
    if (signal > 0 && signal != SIGCHLD) kill(worker, signal);
    if (signal != SIGCHLD) continue;
    if (const auto code = reap(worker)) {
      end_the_rest();
      return *code;
    }
  }
}

}  // namespace

std::optional<int> become_init() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const sigset_t signals = handled_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t worker = fork();
  if (worker < 0) {
    throw Error(ExitCode::infrastructure, fmt::format("cannot start a process: {}", std::strerror(errno)));
  }
  if (worker > 0) return serve(worker, signals);
  setpgid(0, 0);  // so that a terminal's Ctrl-C arrives only once, through the first process
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return std::nullopt;
}

}  // namespace lockstep::launch
