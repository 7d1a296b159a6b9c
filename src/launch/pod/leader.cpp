#include "launch/pod/leader.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "core/say.hpp"
#include "launch/child.hpp"
#include "launch/pod/last_message.hpp"
#include "launch/pod/pod_names.hpp"
#include "launch/restart_policy.hpp"
#include "lockstep/error.hpp"

namespace lockstep::launch {

namespace {

using std::chrono::milliseconds;

constexpr double kLeaderPoll = 0.05;  ///< seconds
constexpr milliseconds kErrorsTick{100}, kNotifyPatience{15'000};

int supervise(const LeaderCommand& command, const char* name, const LeaderOptions& options, StopSignals& signals) {
  MessagePipe errors;
  Child supervisor(command.words, {.output = "", .environment = command.environment, .errors = errors.writer()});
  errors.started();
  int passed_on = 0;
  while (!supervisor.poll()) {
    errors.pass_on(kErrorsTick, signals.descriptor());
    for (const int come = signals.count(); passed_on < come; ++passed_on) supervisor.signal(signals.last());
  }
  errors.pass_on(milliseconds(0), -1);
  const int code = supervisor.poll().value_or(1);
  const std::string message = errors.last();
  if (code != 0) {
    write_termination_message(options.termination_log,
                              message.empty() ? fmt::format("lockstep {} ended with {}", name, code) : message);
  }
  return code;
}

}  // namespace

int lead(const LeaderOptions& options, StopSignals& signals) {
  PodNames names;
  const auto runs = [&](const std::string& host) { return names.runs(host); };
  PoolOptions with_names = options.pool;
  with_names.exists = runs;
  HostPool pool(with_names);
  const auto stop = [&] { return signals.sleep(kLeaderPoll) && signals.count() > 0; };
  if (!options.took_over && !preflight(pool, options.preflight, runs, stop)) {
    say("lockstep pod: stopped by a signal before the job was started\n");
    return static_cast<int>(ExitCode::interrupted);
  }
  int code = options.report ? supervise(options.report(pool.usable()), "bench", options, signals) : 0;
  if (code != 0 && signals.count() > 0) return static_cast<int>(ExitCode::interrupted);
  if (code == 0) {
    options.begins();
    code = supervise(options.command, options.once ? "bench" : "launch", options, signals);
  }
  // With any other code, this leader or its replacement continues, so workers must wait for it.
  const bool over = options.once || code == 0 || is_permanent(code);
  if (over && !options.keeps_workers) {
    pool.ask_all_again(kNotifyPatience);  // includes hosts that came late, or were away at the start
    const std::string end = fmt::format("pod --end {}", options.once ? 0 : code);
    for (const auto& [host, answer] : pool.run_everywhere(pool.usable(), end, kNotifyPatience)) {
      say("lockstep pod: {} could not be notified that the job has ended\n", host);
    }
  }
  return code;
}

}  // namespace lockstep::launch
