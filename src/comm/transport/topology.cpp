#include "comm/transport/topology.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <unordered_map>

#include "lockstep/error.hpp"

namespace lockstep {

int Topology::local_rank(int rank) const {
  int position = 0;
  for (int r = 0; r < rank; ++r) position += same_host(r, rank) ? 1 : 0;
  return position;
}

int Topology::local_size(int rank) const {
  return std::count(host_of.begin(), host_of.end(), host_of.at(rank));
}

}  // namespace lockstep

namespace lockstep::comm {

Topology make_topology(const std::vector<std::string>& host_of_rank) {
  Topology topology;
  std::unordered_map<std::string, int> hosts;
  for (const std::string& name : host_of_rank) {
    const auto [host, is_new] = hosts.emplace(name, static_cast<int>(topology.host_names.size()));
    topology.host_of.push_back(host->second);
    if (is_new) topology.host_names.push_back(name);
  }
  return topology;
}

Hosts::Hosts(const Topology& topology) : host_of_(topology.host_of), ranks_(topology.host_names.size()) {
  for (std::size_t rank = 0; rank < host_of_.size(); ++rank) {
    std::vector<int>& beside = ranks_[host_of_[rank]];
    local_rank_.push_back(beside.size());
    beside.push_back(rank);
  }
}

int Hosts::leader(int host, int owner) const {
  const std::vector<int>& there = ranks(host);
  return there[local_rank(owner) % there.size()];
}

bool Hosts::receives_from(int rank, int owner) const {
  return host_of(owner) != host_of(rank) && leader(host_of(rank), owner) == rank;
}

std::string host_identity() {
  if (const char* given = std::getenv("LOCKSTEP_HOST_ID"); given != nullptr && *given != '\0') return given;
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string describe(const Topology& topology, int rank) {
  return fmt::format("rank {} (host {})", topology.number(rank), topology.host_name(rank));
}

void throw_if_stopped(const Topology& topology, int rank, const Operation& operation) {
  if (operation.stop == nullptr || !*operation.stop) return;
  throw Error(ExitCode::infrastructure, fmt::format("{}: gave up '{}' of step {}, after an error of this rank",
                                                    describe(topology, rank), operation.name, operation.step));
}

void Wait::check() {
  throw_if_stopped(topology_, rank_, operation_);
  // One time for both: a process may be stopped anywhere, so a later time would count what look() has not seen.
  const auto now = Clock::now();
  (void)ran_.look(now);
  WaitWatch* const watch = operation_.watch;
  const auto begin = watch == nullptr ? start_ : std::max(start_, watch->last_progress(peer_));
  end_ = begin + ran_.stopped() + operation_.timeout;
  if (now < end_) return;
  const int blamed = watch == nullptr ? peer_ : watch->blamed(peer_);
  throw_deadline(topology_, rank_, blamed, operation_, seconds_since(begin),
                 blamed == peer_ ? "" : describe(topology_, peer_) + " waits for it, too");
}

void throw_deadline(const Topology& topology, int rank, int peer, const Operation& operation, double seconds,
                    const std::string& missing) {
  throw Error(
      ExitCode::infrastructure,
      fmt::format("rank {} on host {}: waited {:.1f} s for {} in '{}' of step {}{}{}; look at that rank's log: it "
                  "ended, hangs or is much slower than this one (then raise job.timeout)",
                  topology.number(rank), topology.host_name(rank), seconds,
                  peer < 0 ? "the other ranks" : describe(topology, peer), operation.name, operation.step,
                  missing.empty() ? "" : ": ", missing));
}

}  // namespace lockstep::comm
