// Which ranks share a host: Topology, made from each rank's host name; Hosts, which looks it up and tells which rank of
// a host leads for a rank of another host; and how messages describe ranks and hosts.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "core/ran_time.hpp"
#include "core/spans.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::comm {

/// `host_of_rank`: each rank's host by name.
[[nodiscard]] Topology make_topology(const std::vector<std::string>& host_of_rank);

class Hosts {
 public:
  explicit Hosts(const Topology& topology);
  bool operator==(const Hosts&) const = default;
  int count() const { return ranks_.size(); }
  int rank_count() const { return host_of_.size(); }
  /// Ascending.
  const std::vector<int>& ranks(int host) const { return ranks_[host]; }
  int host_of(int rank) const { return host_of_[rank]; }
  /// The rank's position among the ranks of its host; faster than Topology::local_rank(), which looks at all ranks.
  int local_rank(int rank) const { return local_rank_[rank]; }
  /// The leader of the owner's slices: on each host, the rank with the same local rank, so that between hosts of the
  /// same size, traffic never leaves its rail (the adapters with one number on all hosts, which share a switch).
  int leader(int host, int owner) const;
  /// Whether the rank is that leader on its host, and the owner is on another host: it receives what the owner sends to
  /// the host.
  bool receives_from(int rank, int owner) const;

 private:
  std::vector<int> host_of_, local_rank_;  ///< by rank
  std::vector<std::vector<int>> ranks_;    ///< by host
};

/// The host name, or LOCKSTEP_HOST_ID if it is set (for tests with several pretended hosts on one machine).
[[nodiscard]] std::string host_identity();

/// "rank 2 (host b)"
[[nodiscard]] std::string describe(const Topology& topology, int rank);

/// Throws for a wait that has missed its deadline: "rank 1 on host a: waited 60.0 s for rank 2 (host b) in 'reduce' of
/// step 17: `missing`. ..." `peer` -1: any of the others.
[[noreturn]] void throw_deadline(const Topology& topology, int rank, int peer, const Operation& operation,
                                 double seconds, const std::string& missing = "");

/// How often a wait checks whether its rank has failed, or it has been stopped.
inline constexpr std::chrono::milliseconds kCheckInterval{100};

/// Throws if the operation has been stopped (Operation::stop). The code that stopped it reports an error of its own.
void throw_if_stopped(const Topology& topology, int rank, const Operation& operation);

/// A wait for `peer` that begins now.
class Wait {
 public:
  /// References must outlive it.
  Wait(const Topology& topology, int rank, int peer, const Operation& operation)
      : topology_(topology), rank_(rank), peer_(peer), operation_(operation), end_(start_ + operation.timeout) {}
  /// When to look again, and then to call check().
  Clock::time_point next_check() const { return std::min(end_, Clock::now() + kCheckInterval); }
  /// Throws if the operation has been stopped or has missed its deadline.
  void check();

 private:
  const Topology& topology_;
  int rank_, peer_;
  const Operation& operation_;
  Clock::time_point start_ = Clock::now(), end_;
  RanTime ran_{start_};
};

/// For waits that look often: `last_progress` of this rank, or, if that is a while ago, of those that `watch` knows of.
[[nodiscard]] inline Clock::time_point latest_progress(Clock::time_point last_progress, WaitWatch* watch) {
  if (watch == nullptr || Clock::now() < last_progress + kCheckInterval) return last_progress;
  return std::max(last_progress, watch->last_progress(-1));
}

/// The deadline of an operation that starts now.
[[nodiscard]] inline Clock::time_point deadline_of(const Operation& operation) {
  return Clock::now() + operation.timeout;
}

}  // namespace lockstep::comm
