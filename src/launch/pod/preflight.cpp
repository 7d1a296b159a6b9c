#include "launch/pod/preflight.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "core/say.hpp"
#include "lockstep/error.hpp"

namespace lockstep::launch {

namespace {

constexpr double kFirstWord = 5;      ///< seconds
constexpr std::size_t kMaxAsked = 3;  ///< missing hosts to ask for a reason: each may take seconds

std::vector<std::string> silent_ones(const HostPool& pool, const Hosts& there) {
  std::vector<std::string> names;
  for (const Host& host : pool.listed()) {
    if (std::find(there.begin(), there.end(), host) == there.end()) names.push_back(host.name);
  }
  return names;
}

[[noreturn]] void missing(const HostPool& pool, const Hosts& there, std::size_t wanted, double seconds) {
  std::vector<std::string> words = silent_ones(pool, there);
  for (std::size_t i = 0; i < std::min(words.size(), kMaxAsked); ++i) {
    words[i] += fmt::format(" ({})", pool.why_silent(words[i]));
  }
  throw Error(
      ExitCode::infrastructure,
      fmt::format("preflight: expected {} of {} hosts within {:.0f} s, found {}; missing: {}. Do these pods run "
                  "(kubectl get pods, kubectl describe pod), and may pods of this job reach each other?",
                  wanted, pool.listed().size(), seconds, there.size(), fmt::join(words, ", ")));
}

// Reports from time to time which hosts it is waiting for.
void say_who_is_waited_for(const HostPool& pool, const Hosts& there, double& next, double waited) {
  if (waited < next) return;
  next = 2 * waited;
  say("lockstep pod: after {:.0f} s still waiting for {}\n", waited, fmt::join(silent_ones(pool, there), ", "));
}

}  // namespace

bool preflight(HostPool& pool, const PreflightLimits& limits, const std::function<bool()>& stop) {
  const auto start = Clock::now();
  std::optional<Clock::time_point> enough;
  double say_next = kFirstWord;
  while (true) {
    pool.refresh();
    const Hosts there = pool.usable();
    const std::size_t all = pool.listed().size();
    if (there.size() >= all) return true;
    const std::size_t wanted = limits.hosts > 0 ? std::min(static_cast<std::size_t>(limits.hosts), all) : all;
    if (there.size() < wanted) {
      enough.reset();
      if (seconds_since(start) >= limits.seconds) {
        if (!limits.required && !there.empty()) return true;
        missing(pool, there, wanted, limits.seconds);
      }
    } else if (!enough) {
      enough = Clock::now();
    } else if (seconds_since(*enough) >= limits.settle_seconds) {
      return true;
    }
    say_who_is_waited_for(pool, there, say_next, seconds_since(start));
    if (stop()) return false;
  }
}

}  // namespace lockstep::launch
