#include "launch/pod/preflight.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "core/say.hpp"
#include "core/words.hpp"
#include "lockstep/error.hpp"

namespace lockstep::launch {

namespace {

constexpr double kFirstWord = 5;      ///< seconds
constexpr std::size_t kMaxAsked = 3;  ///< missing hosts to ask for a reason: each may take seconds
constexpr std::size_t kMaxNamed = 10;

std::vector<std::string> silent_ones(const HostPool& pool, const Hosts& there) {
  std::vector<std::string> names;
  for (const Host& host : pool.listed()) {
    if (std::find(there.begin(), there.end(), host) == there.end()) names.push_back(host.name);
  }
  return names;
}

[[noreturn]] void missing(const HostPool& pool, const Hosts& there, std::size_t wanted, std::vector<std::string> words,
                          double seconds) {
  for (std::size_t i = 0; i < std::min(words.size(), kMaxAsked); ++i) {
    words[i] += fmt::format(" ({})", pool.why_silent(words[i]));
  }
  throw Error(
      ExitCode::infrastructure,
      fmt::format("preflight: expected {} of {} hosts within {:.0f} s, found {}; missing: {}. Do these pods run "
                  "(kubectl get pods, kubectl describe pod), and may pods of this job reach each other?",
                  wanted, pool.listed().size(), seconds, there.size(), few_of(words, kMaxNamed)));
}

/// How long each host that runs has been silent.
class Silence {
 public:
  /// Returns the hosts that do not run.
  std::vector<std::string> look(const std::vector<std::string>& silent,
                                const std::function<bool(const std::string&)>& runs) {
    std::vector<std::string> pending;
    std::map<std::string, Clock::time_point> now;
    for (const auto& host : silent) {
      if (!runs(host)) {
        pending.push_back(host);
      } else {
        const auto known = since_.find(host);
        now[host] = known == since_.end() ? Clock::now() : known->second;
      }
    }
    since_ = std::move(now);
    return pending;
  }
  std::vector<std::string> longer_than(double seconds) const {
    std::vector<std::string> hosts;
    for (const auto& [host, since] : since_) {
      if (seconds_since(since) >= seconds) hosts.push_back(host);
    }
    return hosts;
  }

 private:
  std::map<std::string, Clock::time_point> since_;
};

}  // namespace

bool preflight(HostPool& pool, const PreflightLimits& limits, const std::function<bool(const std::string&)>& runs,
               const std::function<bool()>& stop) {
  const auto start = Clock::now();
  std::optional<Clock::time_point> enough;
  Silence silence;
  double say_next = kFirstWord;
  while (true) {
    pool.refresh();
    const Hosts there = pool.usable();
    const std::size_t all = pool.listed().size();
    if (there.size() >= all) return true;
    const double waited = seconds_since(start);
    const std::vector<std::string> silent = silent_ones(pool, there), pending = silence.look(silent, runs);
    const std::size_t wanted = limits.hosts > 0 ? std::min(static_cast<std::size_t>(limits.hosts), all) : all;
    if (there.size() < wanted) {
      enough.reset();
      if (!limits.required && waited >= limits.seconds) return true;
      const std::vector<std::string> late = silence.longer_than(limits.seconds);
      if (all - late.size() < wanted) missing(pool, there, wanted, late, limits.seconds);
      if (limits.pending_seconds > 0 && waited >= limits.pending_seconds) {
        missing(pool, there, wanted, silent, limits.pending_seconds);
      }
    } else if (!enough) {
      enough = Clock::now();
    } else if (seconds_since(*enough) >= limits.settle_seconds) {
      return true;
    }
    if (waited >= say_next) {
      say_next = 2 * waited;
      say("lockstep pod: after {:.0f} s still waiting for {}{}\n", waited, few_of(silent, kMaxNamed),
          pending.empty() ? "" : fmt::format("; without a node, as far as DNS knows: {}", pending.size()));
    }
    if (stop()) return false;
  }
}

}  // namespace lockstep::launch
