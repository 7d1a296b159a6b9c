#include "launch/pod/worker.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <utility>

#include "core/files.hpp"
#include "core/say.hpp"
#include "core/spans.hpp"
#include "core/trace.hpp"
#include "launch/pod/pod_names.hpp"
#include "launch/processes.hpp"
#include "lockstep/error.hpp"

namespace lockstep::launch {

LeaderWatch::LeaderWatch(std::vector<std::string> probe, double limit) : probe_(std::move(probe)) {
  if (limit > 0) absence_.emplace(limit, steady_seconds());
}

double LeaderWatch::absent_seconds() {
  if (!absence_) return 0;
  const double now = steady_seconds();
  if (asked_) {
    if (const auto code = asked_->poll()) {
      if (*code == 0) absence_->seen(now);
      asked_.reset();
    }
  }
  if (!asked_ && now >= next_look_) look(now);
  return absence_->seconds(now);
}

void LeaderWatch::look(double now) {
  next_look_ = now + absence_->look_every();
  if (launch_processes_here().empty()) {
    asked_.emplace(probe_, ChildOptions{"/dev/null", {}});
  } else {
    absence_->seen(now);
  }
}

namespace {

constexpr double kWorkerPoll = 0.1;            ///< seconds
constexpr double kAfterTheLeader = 3;          ///< seconds until Kubernetes knows how the leader's container ended
constexpr double kLongestEndOfTheLeader = 30;  ///< seconds

// The daemon of a launch that is just starting is here first, and its ranks a moment later: they are signalled, too.
int leave(Sshd& sshd, StopSignals& signals, double grace_seconds) {
  // First of all, so that the leader, which asks when the ranks have ended, finds this host gone.
  sshd.close_door();
  std::set<pid_t> signalled;
  const auto start = Clock::now();
  while (signals.count() < 2 && seconds_since(start) < grace_seconds) {
    for (const pid_t rank : ranks_here()) {
      if (signalled.insert(rank).second) kill(rank, SIGUSR1);
    }
    if (launch_processes_here().empty()) break;
    (void)signals.sleep(kWorkerPoll);
  }
  say("lockstep pod: leaving after a signal; {} rank{} here {} asked to write a checkpoint, {} left after "
      "{:.1f} s\n",
      signalled.size(), signalled.size() == 1 ? "" : "s", signalled.size() == 1 ? "was" : "were", ranks_here().size(),
      seconds_since(start));
  return static_cast<int>(ExitCode::interrupted);
}

[[noreturn]] void give_up(const WorkerOptions& options) {
  throw Error(ExitCode::infrastructure,
              fmt::format("no leader: {} did not answer for {:.0f} s, and no rank runs here; see why it does not start "
                          "(kubectl describe pod), or let workers wait longer: --leader-limit",
                          options.leader, options.leader_seconds));
}

// The first pod of a Job that ends decides how the Job ends, and Kubernetes then deletes those that still run. So the
// leader, whose log and message people look for, must be the first.
int end_after_leader(StopSignals& signals, const WorkerOptions& options, int code) {
  const auto start = Clock::now();
  auto leads = start;
  while (signals.count() == 0 && seconds_since(leads) < kAfterTheLeader &&
         seconds_since(start) < kLongestEndOfTheLeader) {
    if (!options.succession->is_vacant()) leads = Clock::now();
    (void)signals.sleep(kWorkerPoll);
  }
  if (code != 0) {
    say("lockstep pod: the job has ended with {}: see the log of its leader, {}\n", code, options.succession->leader());
  }
  return code;
}

int end_as_told(StopSignals& signals, const WorkerOptions& options) {
  const std::string told = read_whole_file(options.ended).value_or("");
  const int code = std::atoi(told.c_str());
  if (code == static_cast<int>(ExitCode::unfit_host)) {
    const auto line_end = told.find('\n');
    throw Error(ExitCode::unfit_host, line_end == std::string::npos ? "it is left out" : told.substr(line_end + 1));
  }
  return options.succession == nullptr ? static_cast<int>(ExitCode::done) : end_after_leader(signals, options, code);
}

}  // namespace

std::optional<int> work(Sshd& sshd, StopSignals& signals, const WorkerOptions& options) {
  const double limit = options.leader_seconds;
  LeaderWatch watch(options.probe, options.succession == nullptr ? limit : 0);
  Absence pending(limit, steady_seconds());
  PodNames names;
  const auto lost = [&] {
    if (limit <= 0) return false;
    const double vacant = options.succession == nullptr ? watch.absent_seconds() : options.succession->vacant_seconds();
    const double now = steady_seconds();
    if (vacant > limit / 4 && !names.runs(options.leader)) pending.seen(now);
    return vacant > limit && pending.seconds(now) > limit;
  };
  while (signals.count() == 0) {
    if (std::filesystem::exists(options.ended)) return end_as_told(signals, options);
    sshd.check();
    if (options.succession != nullptr && options.succession->leads()) return std::nullopt;
    if (lost()) give_up(options);
    (void)signals.sleep(kWorkerPoll);
  }
  return leave(sshd, signals, options.grace_seconds);
}

}  // namespace lockstep::launch
