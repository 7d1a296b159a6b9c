#include "launch/supervisor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "comm/transport/mpi_folder.hpp"
#include "core/ran_time.hpp"
#include "core/say.hpp"
#include "launch/allocation.hpp"
#include "launch/attempt.hpp"
#include "launch/fault_judge.hpp"
#include "launch/host_pool.hpp"
#include "launch/processes.hpp"
#include "launch/rank_agent.hpp"
#include "launch/restart_policy.hpp"
#include "launch/run_record.hpp"
#include "launch/secrets.hpp"
#include "launch/stop_signals.hpp"
#include "lockstep/error.hpp"
#include "lockstep/version.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/checkpoint/run_directory.hpp"

namespace lockstep::launch {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAnswerPatience{15'000}, kRemoteEndPatience{15'000};
constexpr std::chrono::seconds kTellAgain{30};
constexpr double kAskSeconds = 0.5;

// Slurm's allocation, where the hosts are left to it.
std::optional<Hosts> slurm_hosts(const LaunchOptions& options) {
  if (!options.hosts.empty() || !options.hostfile.empty() || !options.discover.empty()) return std::nullopt;
  return allocated_hosts();
}

PoolOptions pool_options(const LaunchOptions& options, const std::optional<Hosts>& allocated) {
  PoolOptions pool;
  const bool by_srun = allocated && options.agent.empty();
  pool.agent = !options.agent.empty() ? options.agent : by_srun ? kSrunAgent : "ssh";
  if (by_srun) pool.shell = kSrunShell;
  pool.program = installed_program();
  pool.read_again_seconds = options.read_hosts_again_seconds;
  pool.ask_again_seconds = options.ask_hosts_again_seconds;
  if (!options.hosts.empty()) {
    pool.list = [hosts = parse_hosts(options.hosts)] { return hosts; };
  } else if (!options.hostfile.empty()) {
    pool.list = [path = options.hostfile] { return read_hostfile(path); };
  } else if (!options.discover.empty()) {
    pool.discover = options.discover;
  } else if (allocated) {
    pool.list = [hosts = *allocated] { return hosts; };
  } else {
    pool.list = [ranks = std::max(1, options.ranks)] { return Hosts{{"localhost", ranks}}; };
  }
  return pool;
}

// Hosts that join others must give their bits, where the job requires them, and see its checkpoints.
PoolOptions pool_options(const LaunchOptions& options, const std::optional<Hosts>& allocated, const Job& job,
                         const std::string& mark) {
  PoolOptions pool = pool_options(options, allocated);
  if (options.replaces_unfit) pool.tell_unfit = fmt::format("pod --end {}", static_cast<int>(ExitCode::unfit_host));
  pool.same_fingerprint = job.exact == Exactness::required && job.device != DeviceChoice::cuda;
  if (job.checkpoint.never) return pool;
  pool.lock_file = std::filesystem::absolute(job.run_directory + "/" + checkpoint::kLaunchLock).string();
  pool.mark = mark;
  return pool;
}

// The run's steps, if it has begun with this very job: what they were trained with was no mistake.
bool has_trained(const LaunchOptions& options, const Job& job, const RunRecord& record) {
  return record.had_same_job() && options.resume != "never" &&
         !checkpoint::list_checkpoints(job.run_directory + "/checkpoints").empty();
}

std::set<std::string> names_of(const Hosts& hosts) {
  std::set<std::string> names;
  for (const Host& host : hosts) names.insert(host.name);
  return names;
}

// A rank calls its host as the kernel does, the list perhaps by an address or a longer name.
std::set<std::string> as_listed(const Hosts& hosts, const std::set<std::string>& names) {
  std::set<std::string> found;
  for (const Host& host : hosts) {
    const auto is_it = [&](const std::string& name) {
      return name == host.name || same_machine(name, host.name) ||
             (is_local(host.name) && same_machine(name, own_host_name()));
    };
    if (std::any_of(names.begin(), names.end(), is_it)) found.insert(host.name);
  }
  return found;
}

bool all_local(const Hosts& hosts) {
  return std::all_of(hosts.begin(), hosts.end(), [](const Host& host) { return is_local(host.name); });
}

class Supervisor {
 public:
  Supervisor(const LaunchOptions& options, const Job& job, const CanonicalJob& canonical)
      : options_(options),
        max_ranks_(job.micro_batches),
        directory_(job.run_directory),
        record_(job.run_directory, canonical.text, mark_, options.json, options.lock_seconds, job.telemetry.every),
        allocated_(slurm_hosts(options)),
        pool_options_(pool_options(options, allocated_, job, mark_)),
        pool_(pool_options_),
        policy_({options.max_restarts, options.retry_seconds}, std::hash<std::string>()(mark_)),
        judge_(has_trained(options, job, record_)) {
    if (options.ranks > 0) max_ranks_ = std::min(max_ranks_, options.ranks);
  }
  ~Supervisor() {
    try {
      if (!holders_.empty())
        (void)pool_.run_everywhere(holders_, fmt::format("launch --end {}", mark_), kRemoteEndPatience);
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): they lie in memory, for this user alone
    }
  }
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  int run() {
    pool_.settle(kAnswerPatience);
    warn_problems();
    while (true) {
      if (!choose_hosts()) return signals_.count() > 0 ? ended_by_signal() : no_host_left();
      const AttemptOutcome outcome = attempt();
      if (outcome.step >= 0) note_training();
      if (const auto code = final_code(outcome)) {
        if (*code == 0) record_.finish_printing();
        return *code;
      }
      if (outcome.kind == AttemptOutcome::Kind::ended) {
        policy_.ended(outcome.step);
        report("resize", outcome, 0);
        warn_problems();
        continue;
      }
      end_on_hosts();
      const Verdict verdict = judge(outcome);
      if (verdict.blame == Blame::job) return end_for_good(outcome);
      if (verdict.blame == Blame::hosts) {
        report(name_of(outcome.kind), outcome, 0);
        for (const auto& host : verdict.hosts) pool_.leave_out(host, outcome.message);
        warn_problems();
        continue;
      }
      const auto decision = policy_.failed(outcome.step, seconds_since(start_), verdict.blame == Blame::passing);
      if (!decision.again && is_permanent(outcome.code)) return end_for_good(outcome);
      if (!decision.again) return give_up(outcome, decision.failures);
      report(name_of(outcome.kind), outcome, decision.after_seconds);
      if (decision.after_seconds > 0 && signals_.sleep(decision.after_seconds) && signals_.count() > 0) {
        return ended_by_signal();
      }
      pool_.settle(milliseconds(0));
      warn_problems();
    }
  }

 private:
  // Of the next attempt. Returns false as await_hosts() does.
  bool choose_hosts() {
    do {
      if (!await_hosts()) return false;
      hosts_ = first_slots(pool_.usable(), max_ranks_);
      token_ = random_hex();
    } while (!give_secrets());
    return true;
  }

  // A switch that fails takes all hosts away at once, and may be back soon: that is not a failure of the job. Returns
  // false if no host has answered within the time limit, or a signal came.
  bool await_hosts() {
    RanTime waited;
    auto sent_at = Clock::now() - kTellAgain;
    while (pool_.usable().empty()) {
      if (signals_.count() > 0 || waited.seconds() >= options_.await_hosts_seconds) return false;
      if (Clock::now() - sent_at >= kTellAgain) {
        sent_at = Clock::now();
        record_.warn(fmt::format("no host answers: waiting for one, {:.0f} s of at most {:.0f} s so far",
                                 waited.seconds(), options_.await_hosts_seconds));
      }
      pool_.ask_silent_now();
      (void)signals_.sleep(kAskSeconds);
      pool_.refresh();
      warn_problems();
    }
    return true;
  }

  int ended_by_signal() {
    record_.warn("ended by a signal before the next attempt; run again to resume");
    return static_cast<int>(ExitCode::interrupted);
  }

  int no_host_left() {
    record_.settle();
    say("lockstep: none of the hosts listed ({}) could be used for {:.0f} s; see the warnings, that they are up and "
        "that '{} HOST' reaches them, then run the same command again: it resumes from the newest checkpoint "
        "(--await-hosts sets how long to wait)\n",
        to_text(pool_.listed()), options_.await_hosts_seconds, pool_options_.agent);
    return static_cast<int>(ExitCode::infrastructure);
  }

  std::string why_without_secrets(const std::string& host, int code) const {
    // Of a shell that finds no program, of ssh that finds no host, or of neither in time.
    if (code >= kNoAnswer) return "it does not answer";
    // A version that knows no --keep says so with `usage`.
    if (code == static_cast<int>(ExitCode::unfit_host) || code == static_cast<int>(ExitCode::usage)) {
      return fmt::format(
          "expected lockstep {}, with which this launch has begun, found another version; install that one there",
          version());
    }
    return fmt::format(
        "it has not taken the launch's secrets, which '{} {}' must pass on from stdin to '{} launch "
        "--keep', into /dev/shm",
        pool_options_.agent, host, pool_options_.program);
  }

  // Every host must have this program, whatever has been installed there since the last attempt, and what it had when
  // it trained. Returns false if one does not, or has not taken the secrets: it is left out then.
  bool give_secrets() {
    Variables secrets = secret_variables(environ);
    secrets[kSecretVariable] = token_;
    const auto known = names_of(holders_);
    for (const Host& host : hosts_) {
      if (!known.contains(host.name)) holders_.push_back(host);
    }
    const auto why = [this](const std::string& host, int code) { return why_without_secrets(host, code); };
    const auto unfit =
        pool_.unfit(hosts_, fmt::format("launch --keep {}", mark_), kAnswerPatience, to_text(secrets), why);
    for (const auto& [host, reason] : unfit) pool_.leave_out(host, reason);
    warn_problems();
    return unfit.empty();
  }

  AttemptOutcome attempt() {
    resize_ = Request::none;
    trained_ = false;
    const bool first = record_.attempt() == first_attempt_;
    AttemptOptions attempt;
    record_.require_own();
    try {
      attempt.folder = record_.next_attempt();
    } catch (const Error& error) {
      if (error.code() != ExitCode::infrastructure) throw;
      return {AttemptOutcome::Kind::failed, static_cast<int>(error.code()), 0, own_host_name(), -1, error.what(), {}};
    }
    attempt.mpirun.ranks = count_slots(hosts_);
    if (!all_local(hosts_)) {
      attempt.mpirun.hosts = hosts_;
      if (options_.agent != "ssh") attempt.mpirun.agent = options_.agent;
      attempt.mpirun.by_slurm = allocated_ && options_.agent.empty();
    }
    attempt.mpirun.mark = mark_;
    if (!restarts_.empty()) attempt.mpirun.environment[kRestartsVariable] = restarts_text();
    attempt.token = token_;
    attempt.command =
        rank_command(attempt.mpirun.ranks, first || options_.resume != "never" ? options_.resume : "auto");
    attempt.limits = options_.limits;
    attempt.listening = listening();
    record_.event(events::Launch{.attempt = record_.attempt(), .ranks = attempt.mpirun.ranks, .on = to_text(hosts_)});
    Attempt running(std::move(attempt), [this](const std::string& line) {
      record_.line(line);
      if (line.starts_with(R"({"event":"step")")) note_training();
    });
    AttemptOutcome outcome = running.run([this] { return request(); }, signals_.descriptor());
    if (outcome.kind == AttemptOutcome::Kind::ended) {  // ranks that leave remove what they have taken
      std::erase_if(holders_, [names = names_of(hosts_)](const Host& host) { return names.contains(host.name); });
    }
    return outcome;
  }

  void note_training() {
    if (std::exchange(trained_, true)) return;
    judge_.trained(names_of(hosts_));
    pool_.trained(hosts_);
  }

  // Of two hosts that do not share a directory, the ranks cannot tell which has the wrong one: this launch's record is
  // in the right one, with its lock. Of more, most are right.
  std::set<std::string> unfit_hosts(const AttemptOutcome& outcome) const {
    const bool of_two = outcome.unfit.empty() && hosts_.size() == 2;
    if (!of_two || outcome.code != static_cast<int>(ExitCode::cannot_create)) return as_listed(hosts_, outcome.unfit);
    return pool_.without_lock(hosts_, kAnswerPatience);
  }

  [[nodiscard]] Verdict judge(const AttemptOutcome& outcome) {
    const bool reported = outcome.kind == AttemptOutcome::Kind::failed && outcome.rank >= 0;
    return judge_.judge({.code = outcome.code,
                         .hosts = names_of(hosts_),
                         .reporting = as_listed(hosts_, outcome.reporting),
                         .unfit = unfit_hosts(outcome)},
                        reported);
  }

  Listening listening() {
    Listening found = listening_for(hosts_, options_.listen);
    if (!found.warning.empty() && found.warning != reported_warning_) record_.warn(found.warning);
    reported_warning_ = found.warning;
    return found;
  }

  std::vector<std::string> rank_command(int ranks, const std::string& resume) const {
    std::vector<std::string> command = all_local(hosts_) ? std::vector{own_program()} : own_program_on_hosts();
    command.emplace_back("train");
    command.insert(command.end(), options_.words.begin(), options_.words.end());
    command.insert(command.end(), {"--expect-world-size", fmt::format("{}", ranks), "--resume", resume});
    if (!options_.profile.empty()) command.insert(command.end(), {"--profile", options_.profile});
    return command;
  }

  Request request() {
    const int signals = signals_.count();
    if (signals >= 2) return Request::kill;
    if (signals == 1) {
      if (!stopping_)
        record_.warn("stopping: a checkpoint after this step, then the end; a second signal ends it immediately");
      stopping_ = true;
      return Request::stop;
    }
    pool_.refresh();
    warn_problems();
    resize_ = std::max(resize_, wanted_resize());
    return resize_;
  }

  // An added host can wait for the job's next checkpoint; a removed one may be gone soon.
  Request wanted_resize() const {
    const Hosts wanted = first_slots(pool_.usable(), max_ranks_);
    if (wanted.empty() || wanted == hosts_) return Request::none;
    for (const Host& host : hosts_) {
      const auto same = std::find_if(wanted.begin(), wanted.end(), [&](const Host& h) { return h.name == host.name; });
      if (same == wanted.end() || same->slots < host.slots) return Request::stop;
    }
    return Request::yield;
  }

  [[nodiscard]] std::optional<int> final_code(const AttemptOutcome& outcome) {
    if (outcome.kind == AttemptOutcome::Kind::killed) {
      end_on_hosts();
      return 128 + signals_.last();
    }
    if (outcome.kind == AttemptOutcome::Kind::ended) {
      if (outcome.code == 0 || stopping_) return outcome.code;
      if (resize_ == Request::none && !a_host_left()) return outcome.code;
      return std::nullopt;
    }
    if (!stopping_) return std::nullopt;
    end_on_hosts();
    return end_for_good(outcome);
  }

  int end_for_good(const AttemptOutcome& outcome) {
    record_.settle();
    say("lockstep: {}{}\n", outcome.message, stopping_ ? "; it was stopping, so it is not restarted" : "");
    return outcome.code;
  }

  // The supervisor did not ask the ranks to stop, so a signal on one of the hosts did. If that host accepts no more
  // ranks, it is leaving, and the others continue without it.
  [[nodiscard]] bool a_host_left() {
    pool_.ask_all_again(kAnswerPatience);
    const Hosts left = first_slots(pool_.usable(), max_ranks_);
    return std::any_of(hosts_.begin(), hosts_.end(),
                       [&](const Host& host) { return std::find(left.begin(), left.end(), host) == left.end(); });
  }

  std::string restarts_text() const {
    std::vector<std::string> words;
    for (const auto& [reason, count] : restarts_) words.push_back(fmt::format("{}={}", reason, count));
    return fmt::format("{}", fmt::join(words, ","));
  }

  void report(const std::string& reason, const AttemptOutcome& outcome, double after) {
    ++restarts_[reason];
    for (const auto& state : outcome.states) record_.warn(state);
    record_.event(events::Restart{.reason = reason,
                                  .message = outcome.message,
                                  .rank = outcome.rank,
                                  .host = outcome.host,
                                  .step = outcome.step,
                                  .attempt = record_.attempt(),
                                  .after_seconds = after});
    failures_.push_back(fmt::format("attempt {}, step {}: {}", record_.attempt(), outcome.step, outcome.message));
  }

  int give_up(const AttemptOutcome& outcome, int failures) {
    report("given up", outcome, 0);
    const std::ptrdiff_t shown = std::min<std::size_t>(failures_.size(), 10);
    record_.settle();
    say("lockstep: given up after {} failures, none of which got past step {}:\n  {}\nThe ranks' logs are in "
        "{}/logs. Fix the cause and run the same command again: it resumes from the newest checkpoint\n",
        failures, outcome.step, fmt::join(failures_.end() - shown, failures_.end(), "\n  "), directory_);
    return static_cast<int>(ExitCode::infrastructure);
  }

  void end_on_hosts() {
    for (const auto& [host, code] :
         pool_.run_everywhere(hosts_, fmt::format("launch --end {}", mark_), kRemoteEndPatience)) {
      record_.warn(fmt::format("host {} does not answer: it is skipped until it does", host));
    }
  }

  void warn_problems() {
    for (const auto& problem : pool_.take_problems()) record_.warn(problem);
  }

  const LaunchOptions& options_;
  int max_ranks_;
  std::string mark_ = "lockstep-" + random_hex();
  std::string directory_;
  StopSignals signals_;
  RunRecord record_;
  int first_attempt_ = record_.attempt();
  std::optional<Hosts> allocated_;
  PoolOptions pool_options_;
  HostPool pool_;
  RestartPolicy policy_;
  FaultJudge judge_;
  Clock::time_point start_ = Clock::now();
  bool trained_ = false;  ///< a step, in this attempt
  Hosts hosts_;           ///< of the attempt
  std::string token_;     ///< of its control socket
  Hosts holders_;         ///< may have secrets in their memory
  Request resize_ = Request::none;
  bool stopping_ = false;
  std::string reported_warning_;
  std::vector<std::string> failures_;
  std::map<std::string, int> restarts_;  ///< by reason
};

}  // namespace

int launch(const LaunchOptions& options, const Job& job, const CanonicalJob& canonical) {
  return Supervisor(options, job, canonical).run();
}

int end_launch(const std::string& mark) {
  (void)kill_marked(mark, 0, kRemoteEndPatience);
  drop_secrets(mark);
  comm::remove_dead_mpi_folders();
  return marked_processes(mark).empty() ? 0 : 1;
}

}  // namespace lockstep::launch
