#include "launch/rank_monitor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "core/unfit_hosts.hpp"
#include "launch/restart_policy.hpp"

namespace lockstep::launch {

namespace {

using std::chrono::milliseconds;

constexpr double kDeathSettles = 0.1;  ///< seconds
constexpr milliseconds kDumpPatience{1'000};
constexpr std::string_view kStepEvent = R"({"event":"step","step":)";

}  // namespace

std::string rank_text(int rank, const std::string& host) {
  return host.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {} (host {})", rank, host);
}

const char* name_of(AttemptOutcome::Kind kind) {
  switch (kind) {
    case AttemptOutcome::Kind::ended:
      return "end";
    case AttemptOutcome::Kind::failed:
      return "error";
    case AttemptOutcome::Kind::died:
      return "death";
    case AttemptOutcome::Kind::hung:
      return "hang";
    case AttemptOutcome::Kind::mpirun_died:
      return "mpirun";
    case AttemptOutcome::Kind::killed:
      return "kill";
  }
  return "";
}

RankMonitor::RankMonitor(const std::string& token, int ranks, const HangLimits& limits, const Listening& where,
                         std::function<void(const std::string&)> on_event)
    : ranks_(ranks),
      limits_(limits),
      on_event_(std::move(on_event)),
      server_(token, ranks, where),
      watch_(ranks, limits, 0) {}

void RankMonitor::hear(milliseconds patience, int wake) {
  // All at the same time: what waited in the sockets while this process was stopped is not older than its end.
  auto messages = server_.poll(patience, wake);
  now_ = ran_.seconds();
  for (auto& message : messages) take(std::move(message));
}

void RankMonitor::ask(Request request) {
  if (request <= asked_) return;
  asked_ = request;
  if (request == Request::yield) server_.send_all("yield");
  if (request == Request::stop) server_.send_all("stop");
}

void RankMonitor::take(RankMessage message) {
  const int rank = message.rank;
  if (rank < 0 || rank >= ranks_) return;
  std::string& rest = message.rest;
  if (message.word == "hello") {
    hello(rank, rest);
  } else if (message.word == "beat") {
    Beat beat;
    beat.ticks = take_number(rest);
    beat.step = take_number(rest);
    beat.median_seconds = static_cast<double>(take_number(rest)) / 1000;
    beat.peer = take_number(rest);
    beat.summary = rest;
    watch_.beat(rank, now(), beat);
    server_.send(rank, "pong");
  } else if (message.word == "event") {
    if (rest.starts_with(kStepEvent)) watch_.reached(std::atoll(rest.c_str() + kStepEvent.size()));
    on_event_(rest);
  } else if (message.word == "error") {
    const int code = take_number(rest);
    error(rank, code, unpacked_lines(rest));
  } else if (message.word == "unfit") {
    unfit_.insert(rest);
  } else if (message.word == "bye") {
    codes_[rank] = take_number(rest);
    watch_.left(rank);
  } else if (message.word.empty()) {
    lost(rank);
  }
}

void RankMonitor::hello(int rank, std::string rest) {
  (void)take_number(rest);  // world size
  (void)take_number(rest);  // process id
  hosts_[rank] = rest;
  watch_.connected(rank, now());
  server_.send(rank, fmt::format("welcome {:.0f} {:.0f}", limits_.seconds * 1000, beat_period(ranks_, limits_) * 1000));
  if (asked_ == Request::yield) server_.send(rank, "yield");
  if (asked_ == Request::stop) server_.send(rank, "stop");
}

// What only some hosts have may be these hosts' fault, so the others get a moment to report it, too.
void RankMonitor::error(int rank, int code, const std::string& message) {
  server_.send_all("dump");
  const bool on_one_host = std::all_of(hosts_.begin(), hosts_.end(),
                                       [&](const auto& entry) { return entry.second == hosts_.begin()->second; });
  blame(AttemptOutcome::Kind::failed, rank, code, fmt::format("{}: {}", rank_text(rank, hosts_[rank]), message),
        is_permanent(code) && on_one_host ? 0 : kErrorSettles);
  if (fault_->kind != AttemptOutcome::Kind::failed || fault_->code != code) return;
  fault_->reporting.insert(hosts_[rank]);
  fault_->unfit = unfit_;
}

void RankMonitor::lost(int rank) {
  watch_.left(rank);
  if (codes_.contains(rank)) return;
  blame(AttemptOutcome::Kind::died, rank, 1, fmt::format("{} died", rank_text(rank, hosts_[rank])), kDeathSettles);
}

// The first fault counts, but a death explains errors of ranks that waited for the dead one, and an unfit host those of
// ranks that waited for its own.
void RankMonitor::blame(AttemptOutcome::Kind kind, int rank, int code, const std::string& message, double settle) {
  const int unfit = static_cast<int>(ExitCode::unfit_host);
  const bool by_waiting = fault_ && fault_->kind == AttemptOutcome::Kind::failed && !is_permanent(fault_->code) &&
                          fault_->code != unfit && fault_->rank != rank;
  const bool explains = by_waiting && (kind == AttemptOutcome::Kind::died || code == unfit);
  if (fault_ && !explains) return;
  fault_ = AttemptOutcome{kind, code, rank, hosts_[rank], -1, message, {}};
  settled_at_ = now() + settle;
}

std::optional<int> RankMonitor::code_of_all() const {
  if (static_cast<int>(codes_.size()) < ranks_) return std::nullopt;
  int code = 0;
  for (const auto& [rank, one] : codes_) code = std::max(code, one);
  return code;
}

std::optional<AttemptOutcome> RankMonitor::find_hang() {
  const auto hang = watch_.check(now());
  if (!hang) return std::nullopt;
  return hung(*hang);
}

AttemptOutcome RankMonitor::hung(const Hang& hang) {
  const double found_at = now();
  server_.send_all("dump");
  const auto until = Clock::now() + kDumpPatience;
  int dumped = 0;
  while (dumped < ranks_ && Clock::now() < until) {
    for (auto& message : server_.poll(kTick, -1)) {
      if (message.word == "dumped") ++dumped;
      if (message.word == "beat") take(std::move(message));
    }
  }
  const std::string who = rank_text(hang.rank, hosts_[hang.rank]);
  const std::string what =
      hang.silent ? fmt::format("{} hangs: no heartbeat for {:.1f} s; it is stopped, or its host or link is down", who,
                                hang.seconds)
                  : fmt::format("{} hangs: it is alive, but no rank made progress for {:.1f} s", who, hang.seconds);
  return {AttemptOutcome::Kind::hung, 1, hang.rank, hosts_[hang.rank], -1, what, watch_.states(found_at)};
}

}  // namespace lockstep::launch
