#include "launch/attempt.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "comm/mpi_folder.hpp"
#include "launch/processes.hpp"
#include "launch/rank_agent.hpp"
#include "launch/restart_policy.hpp"
#include "lockstep/error.hpp"

namespace lockstep::launch {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick{50};
constexpr milliseconds kMpirunPatience{1'500};  ///< to clean up after itself when its ranks are gone
constexpr milliseconds kKillPatience{10'000};
constexpr double kDeathSettles = 0.1, kErrorSettles = 0.5;  ///< seconds
constexpr double kEndPatience = 10;                         ///< seconds, for mpirun after the last good-bye
constexpr milliseconds kDumpPatience{1'000};
constexpr std::string_view kStepEvent = R"({"event":"step","step":)";

std::string rank_text(int rank, const std::string& host) {
  return host.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {} (host {})", rank, host);
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

// The secret goes by the environment of the ranks, which only their user may read: command lines are everybody's.
MpirunOptions with_variables(MpirunOptions options, const std::string& folder, const std::string& addresses,
                             const std::string& secret) {
  options.environment.merge(network_variables(environ));
  options.environment[kMarkVariable] = options.mark;
  options.environment[kFolderVariable] = folder;
  options.environment[kSupervisorVariable] = addresses;
  options.environment[kSecretVariable] = secret;
  return options;
}

Child start_mpirun(const AttemptOptions& options) {
  auto command = mpirun_command(options.mpirun);
  command.insert(command.end(), options.command.begin(), options.command.end());
  return {command, {options.folder + "/mpirun.log", mpirun_environment(options.mpirun)}};
}

}  // namespace

const char* name_of(Outcome::Kind kind) {
  switch (kind) {
    case Outcome::Kind::ended:
      return "end";
    case Outcome::Kind::failed:
      return "error";
    case Outcome::Kind::died:
      return "death";
    case Outcome::Kind::hung:
      return "hang";
    case Outcome::Kind::mpirun_died:
      return "mpirun";
    case Outcome::Kind::killed:
      return "kill";
  }
  return "";
}

Attempt::Attempt(AttemptOptions options, std::function<void(const std::string&)> on_event)
    : options_(std::move(options)),
      on_event_(std::move(on_event)),
      secret_(random_hex()),
      server_(secret_, options_.mpirun.ranks, options_.listening),
      mpirun_((options_.mpirun = with_variables(options_.mpirun, options_.folder, server_.addresses(), secret_),
               start_mpirun(options_))),
      watch_(options_.mpirun.ranks, options_.limits, 0) {}

Outcome Attempt::run(const std::function<Wish()>& wish, int wake) {
  while (true) {
    for (auto& message : server_.poll(kTick, wake)) hear(std::move(message), now());
    ask(wish());
    auto outcome = look(now());
    if (!outcome) continue;
    const bool well = outcome->kind == Outcome::Kind::ended;
    end_processes(!well);
    outcome->step = watch_.step();
    return *outcome;
  }
}

void Attempt::ask(Wish wish) {
  if (wish <= wished_) return;
  wished_ = wish;
  if (wish == Wish::yield) server_.send_all("yield");
  if (wish == Wish::stop) server_.send_all("stop");
}

void Attempt::hear(RankMessage message, double now) {
  const int rank = message.rank;
  if (rank < 0 || rank >= options_.mpirun.ranks) return;
  std::string& rest = message.rest;
  if (message.word == "hello") {
    hello(rank, rest, now);
  } else if (message.word == "beat") {
    Beat beat;
    beat.ticks = static_cast<std::uint64_t>(take_number(rest));
    beat.step = take_number(rest);
    beat.median_seconds = static_cast<double>(take_number(rest)) / 1000;
    beat.peer = static_cast<int>(take_number(rest));
    beat.summary = rest;
    watch_.beat(rank, now, beat);
    server_.send(rank, "pong");
  } else if (message.word == "event") {
    if (rest.starts_with(kStepEvent)) watch_.reached(std::atoll(rest.c_str() + kStepEvent.size()));
    on_event_(rest);
  } else if (message.word == "error") {
    const int code = static_cast<int>(take_number(rest));
    server_.send_all("dump");
    fault(Outcome::Kind::failed, rank, code, fmt::format("{}: {}", rank_text(rank, hosts_[rank]), rest),
          is_permanent(code) ? 0 : kErrorSettles);
  } else if (message.word == "bye") {
    codes_[rank] = static_cast<int>(take_number(rest));
    watch_.left(rank);
  } else if (message.word.empty()) {
    lost(rank);
  }
}

void Attempt::hello(int rank, std::string rest, double now) {
  (void)take_number(rest);  // world size
  (void)take_number(rest);  // process id
  hosts_[rank] = rest;
  watch_.connected(rank, now);
  server_.send(rank, fmt::format("welcome {:.0f} {:.0f}", options_.limits.seconds * 1000,
                                 beat_period(options_.mpirun.ranks, options_.limits) * 1000));
  if (wished_ == Wish::yield) server_.send(rank, "yield");
  if (wished_ == Wish::stop) server_.send(rank, "stop");
}

void Attempt::lost(int rank) {
  watch_.left(rank);
  if (codes_.contains(rank)) return;
  fault(Outcome::Kind::died, rank, 1, fmt::format("{} died", rank_text(rank, hosts_[rank])), kDeathSettles);
}

// The first one counts, but a death explains the errors of those who waited for the dead.
void Attempt::fault(Outcome::Kind kind, int rank, int code, const std::string& message, double settle) {
  const bool explains = fault_ && fault_->kind == Outcome::Kind::failed && kind == Outcome::Kind::died &&
                        !is_permanent(fault_->code) && fault_->rank != rank;
  if (fault_ && !explains) return;
  fault_ = Outcome{kind, code, rank, hosts_[rank], -1, message, {}};
  settled_at_ = now() + settle;
}

std::optional<Outcome> Attempt::look(double now) {
  if (wished_ == Wish::kill) return Outcome{Outcome::Kind::killed, 0, -1, "", -1, "ended by a second signal", {}};
  if (fault_ && mpirun_.poll() && mpirun_.killed()) return mpirun_ended(now);
  if (fault_ && now >= settled_at_) return fault_;
  if (fault_) return std::nullopt;
  if (auto outcome = mpirun_ended(now)) return outcome;
  if (const auto hang = watch_.check(now)) return hung(*hang, now);
  return std::nullopt;
}

std::optional<Outcome> Attempt::mpirun_ended(double now) {
  const bool all_left = static_cast<int>(codes_.size()) == options_.mpirun.ranks;
  if (!mpirun_.poll() && !all_left) return std::nullopt;
  if (!ended_at_) ended_at_ = now;
  if (all_left && (mpirun_.poll() || now - *ended_at_ > kEndPatience)) {
    int code = 0;
    for (const auto& [rank, one] : codes_) code = std::max(code, one);
    return Outcome{Outcome::Kind::ended, code, -1, "", -1, "", {}};
  }
  if (!mpirun_.poll() || (!mpirun_.killed() && now - *ended_at_ < kErrorSettles)) return std::nullopt;
  const int code = mpirun_.poll().value_or(1);
  if (mpirun_.killed()) {
    return Outcome{
        Outcome::Kind::mpirun_died, 1, -1, "", -1, fmt::format("mpirun was killed by signal {}", code - 128), {}};
  }
  return Outcome{
      Outcome::Kind::failed,
      code,
      -1,
      "",
      -1,
      fmt::format("mpirun ended with {} before its ranks did:{}", code, last_lines(options_.folder + "/mpirun.log", 8)),
      {}};
}

Outcome Attempt::hung(const Hang& hang, double now) {
  server_.send_all("dump");
  const auto until = Clock::now() + kDumpPatience;
  int dumped = 0;
  while (dumped < options_.mpirun.ranks && Clock::now() < until) {
    for (auto& message : server_.poll(kTick, -1)) {
      if (message.word == "dumped") ++dumped;
      if (message.word == "beat") hear(std::move(message), now);
    }
  }
  const std::string who = rank_text(hang.rank, hosts_[hang.rank]);
  const std::string what =
      hang.silent ? fmt::format("{} hangs: no heartbeat for {:.1f} s; it is stopped, or its host or link is down", who,
                                hang.seconds)
                  : fmt::format("{} hangs: it lives, but no rank's work went on for {:.1f} s", who, hang.seconds);
  return {Outcome::Kind::hung, 1, hang.rank, hosts_[hang.rank], -1, what, watch_.states(now)};
}

// mpirun comes last: when its ranks are gone it removes what it made in /tmp and /dev/shm, and its daemons.
void Attempt::end_processes(bool at_once) {
  if (at_once) (void)kill_marked(options_.mpirun.mark, mpirun_.pid(), kKillPatience);
  if (!mpirun_.wait(kMpirunPatience)) mpirun_.signal(SIGKILL);
  (void)mpirun_.wait(kKillPatience);
  (void)kill_marked(options_.mpirun.mark, 0, kKillPatience);
  comm::remove_dead_mpi_folders();
}

}  // namespace lockstep::launch
