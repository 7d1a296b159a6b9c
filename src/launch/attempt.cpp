#include "launch/attempt.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>

#include "comm/transport/mpi_folder.hpp"
#include "core/cgroup.hpp"
#include "core/unfit_hosts.hpp"
#include "launch/processes.hpp"
#include "launch/rank_agent.hpp"
#include "launch/secrets.hpp"
#include "lockstep/error.hpp"

namespace lockstep::launch {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMpirunPatience{1'500};  ///< time to clean up after itself when its ranks are gone
constexpr milliseconds kKillPatience{10'000};
constexpr double kEndPatience = 10;  ///< seconds that mpirun may still run after the last rank's bye

/// For what mpirun says of a rank that has died before it connected: it waits 3 s for the others, then tells which.
constexpr milliseconds kWordsPatience{15'000};

constexpr const char* kIllegalInstruction = "killed by signal 4 (Illegal instruction)";
constexpr int kCodeNotStarted = 127;  ///< of the loader; no command of lockstep ends with it
constexpr const char* kNotStarted = "ended with 127";

bool is_the_hosts(const std::string& cause) {
  return cause == kNotStarted || cause == kIllegalInstruction;
}

void blame_host(AttemptOutcome& outcome, const std::string& host) {
  outcome.code = static_cast<int>(ExitCode::unfit_host);
  outcome.unfit = {host};
}

/// mpirun fills the slots in the list's order.
std::string host_of(int rank, const Hosts& hosts) {
  for (const Host& host : hosts) {
    if ((rank -= host.slots) < 0) return host.name;
  }
  return own_host_name();
}

std::string last_lines(const std::string& path, std::size_t count) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.find_first_not_of("- \t") != std::string::npos) lines.push_back(line);
  }
  std::string text;
  for (std::size_t i = lines.size() - std::min(count, lines.size()); i < lines.size(); ++i) text += "\n  " + lines[i];
  return text;
}

// The token is in the ranks' environment, which only their user can read; command lines are visible to everyone.
MpirunOptions with_variables(MpirunOptions options, const std::string& folder, const std::string& addresses,
                             const std::string& token) {
  options.environment.merge(passed_on_variables(environ));
  options.environment[kMarkVariable] = options.mark;
  options.environment[kFolderVariable] = folder;
  options.environment[kSupervisorVariable] = addresses;
  options.secrets[kSecretVariable] = token;
  return options;
}

Child start_mpirun(const AttemptOptions& options) {
  auto command = mpirun_command(options.mpirun);
  command.insert(command.end(), options.command.begin(), options.command.end());
  return {command,
          {.output = options.folder + "/mpirun.log",
           .environment = mpirun_environment(options.mpirun),
           .trains = Trains::on_ranks}};
}

}  // namespace

Attempt::Attempt(AttemptOptions options, std::function<void(const std::string&)> on_event)
    : options_(std::move(options)),
      ranks_(options_.token, options_.mpirun.ranks, options_.limits, options_.listening, std::move(on_event)),
      mpirun_((options_.mpirun = with_variables(options_.mpirun, options_.folder, ranks_.addresses(), options_.token),
               start_mpirun(options_))),
      memory_kills_(Cgroups().memory_kills()) {}

AttemptOutcome Attempt::run(const std::function<Request()>& request, int wake) {
  while (true) {
    ranks_.hear(kTick, wake);
    ranks_.ask(request());
    auto outcome = look();
    if (!outcome) continue;
    const bool well = outcome->kind == AttemptOutcome::Kind::ended;
    if (outcome->kind == AttemptOutcome::Kind::died && !ranks_.has_met_all()) (void)mpirun_.wait(kWordsPatience);
    end_processes(!well);
    if (outcome->kind == AttemptOutcome::Kind::died) explain_death(*outcome);
    outcome->step = ranks_.step();
    return *outcome;
  }
}

std::optional<AttemptOutcome> Attempt::look() {
  if (ranks_.asked() == Request::kill)
    return AttemptOutcome{AttemptOutcome::Kind::killed, 0, -1, "", -1, "ended by a second signal", {}};
  if (ranks_.fault() && mpirun_.poll() && mpirun_.killed()) return mpirun_ended();
  if (ranks_.fault()) return ranks_.settled() ? ranks_.fault() : std::nullopt;
  if (auto outcome = mpirun_ended()) return outcome;
  return ranks_.find_hang();
}

std::optional<AttemptOutcome> Attempt::mpirun_ended() {
  const auto code_of_all = ranks_.code_of_all();
  if (!mpirun_.poll() && !code_of_all) return std::nullopt;
  if (!ended_at_) ended_at_ = Clock::now();
  const double since = seconds_since(*ended_at_);
  if (code_of_all && (mpirun_.poll() || since > kEndPatience)) {
    return AttemptOutcome{AttemptOutcome::Kind::ended, *code_of_all, -1, "", -1, "", {}};
  }
  if (!mpirun_.poll() || (!mpirun_.killed() && since < kErrorSettles)) return std::nullopt;
  const int code = mpirun_.poll().value_or(1);
  if (mpirun_.killed()) {
    return AttemptOutcome{AttemptOutcome::Kind::mpirun_died,
                          1,
                          -1,
                          "",
                          -1,
                          fmt::format("mpirun was killed by signal {}{}", code - 128, why_mpirun_fails()),
                          {}};
  }
  AttemptOutcome outcome{
      AttemptOutcome::Kind::failed,
      code,
      -1,
      "",
      -1,
      fmt::format("mpirun ended with {} before its ranks did:{}", code, last_lines(options_.folder + "/mpirun.log", 8)),
      {}};
  const OpenMpiWords words = open_mpi_words_in(options_.folder + "/mpirun.log");
  const std::string host = words.host_without_program();
  if (!host.empty()) blame_host(outcome, host);
  const auto death = death_at_start(words);
  if (death && is_the_hosts(death->cause)) outcome.kind = AttemptOutcome::Kind::died;  // explained there
  return outcome;
}

// Of a rank that had not connected yet. Open MPI 4 may not name one that dies at once, but ends with its code.
std::optional<OpenMpiWords::Death> Attempt::death_at_start(const OpenMpiWords& words) {
  if (auto first = words.first_death()) return ranks_.has_met(first->rank) ? std::nullopt : first;
  OpenMpiWords::Death death{-1, ""};
  if (mpirun_.poll() == kCodeNotStarted) death.cause = kNotStarted;
  if (mpirun_.poll() == 128 + SIGILL) death.cause = kIllegalInstruction;
  if (death.cause.empty()) return std::nullopt;
  std::set<std::string> hosts;
  for (int rank = options_.mpirun.ranks - 1; rank >= 0; --rank) {
    if (ranks_.has_met(rank)) continue;
    death.rank = rank;
    hosts.insert(host_of(rank, options_.mpirun.hosts));
  }
  return hosts.size() == 1 ? std::optional(death) : std::nullopt;
}

// What mpirun says of it, once it has ended, and the kernel.
void Attempt::explain_death(AttemptOutcome& outcome) {
  const OpenMpiWords words = open_mpi_words_in(options_.folder + "/mpirun.log");
  std::string cause = words.death(outcome.rank);
  // When a rank dies before it connects, mpirun kills the others, which are missed first.
  if (const auto first = death_at_start(words)) {
    outcome.rank = first->rank;
    outcome.host = host_of(first->rank, options_.mpirun.hosts);
    outcome.message = rank_text(outcome.rank, outcome.host) + " died";
    cause = first->cause;
  }
  if (is_the_hosts(cause)) {
    blame_host(outcome, outcome.host);
    cause += cause == kNotStarted
                 ? ": the program cannot be started there:" + last_lines(options_.folder + "/mpirun.log", 8)
                 : "; this host's processor lacks instructions that the program was built for";
  }
  if (Cgroups().memory_kills() > memory_kills_) cause = (cause.empty() ? "killed" : cause) + kOutOfMemory;
  const std::string block = cause.empty() ? words.first_block() : "";
  if (!cause.empty()) outcome.message += ": " + cause;
  if (!block.empty()) outcome.message += ": Open MPI says:" + block;
}

// mpirun is ended last: when its ranks are gone, it removes its daemons and what it made in /tmp and /dev/shm.
void Attempt::end_processes(bool at_once) {
  if (at_once) (void)kill_marked(options_.mpirun.mark, mpirun_.pid(), kKillPatience);
  if (!mpirun_.wait(kMpirunPatience)) mpirun_.signal(SIGKILL);
  (void)mpirun_.wait(kKillPatience);
  (void)kill_marked(options_.mpirun.mark, 0, kKillPatience);
  comm::remove_dead_mpi_folders();
}

}  // namespace lockstep::launch
