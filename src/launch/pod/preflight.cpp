#include "launch/pod/preflight.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "lockstep/error.hpp"

namespace lockstep::launch {

namespace {

constexpr double kFirstWord = 5;       ///< seconds
constexpr std::size_t kMostAsked = 3;  ///< of those that are missing: each may take seconds to say why

[[noreturn]] void missing(const HostPool& pool, const Hosts& there, int wanted, double seconds) {
  std::vector<std::string> words;
  for (const Host& host : pool.listed()) {
    if (std::find(there.begin(), there.end(), host) != there.end()) continue;
    words.push_back(words.size() < kMostAsked ? fmt::format("{} ({})", host.name, pool.why_silent(host.name))
                                              : host.name);
  }
  throw Error(
      ExitCode::infrastructure,
      fmt::format("preflight: expected {} of {} hosts within {:.0f} s, found {}; missing: {}. Do these pods run "
                  "(kubectl get pods, kubectl describe pod), and may pods of this job reach each other?",
                  wanted, pool.listed().size(), seconds, there.size(), fmt::join(words, ", ")));
}

}  // namespace

// Says now and then what the waiting is for.
void say_who_is_waited_for(const HostPool& pool, const Hosts& there, double& next, double waited) {
  if (waited < next) return;
  next = 2 * waited;
  std::vector<std::string> silent;
  for (const Host& host : pool.listed()) {
    if (std::find(there.begin(), there.end(), host) == there.end()) silent.push_back(host.name);
  }
  fmt::print(stderr, "lockstep pod: after {:.0f} s still waiting for {}\n", waited, fmt::join(silent, ", "));
}

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
        missing(pool, there, static_cast<int>(wanted), limits.seconds);
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
