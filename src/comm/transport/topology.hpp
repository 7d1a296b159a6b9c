// Which ranks share a host: Topology, made from what each rank calls its host; Hosts, which looks it up and says who on
// a host leads for a rank of another one; and the words that messages use for ranks and hosts.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/spans.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::comm {

/// `host_of_rank`: each rank's host by name.
[[nodiscard]] Topology make_topology(const std::vector<std::string>& host_of_rank);

class Hosts {
 public:
  explicit Hosts(const Topology& topology);
  [[nodiscard]] int count() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] int rank_count() const { return static_cast<int>(host_of_.size()); }
  /// Ascending.
  [[nodiscard]] const std::vector<int>& ranks(int host) const { return ranks_[static_cast<std::size_t>(host)]; }
  [[nodiscard]] int host_of(int rank) const { return host_of_[static_cast<std::size_t>(rank)]; }
  /// Its position among the ranks of its host; Topology::local_rank() looks at all ranks for it.
  [[nodiscard]] int local_rank(int rank) const { return local_rank_[static_cast<std::size_t>(rank)]; }
  /// The leader of the owner's slices: on each host the rank of the same local rank, so that slices of hosts alike
  /// never leave their rail (the adapters of one number on all hosts, which share a switch).
  [[nodiscard]] int leader(int host, int owner) const;
  /// Whether the rank is that leader on its host, which is another one than the owner's: what the owner sends to the
  /// host comes to it.
  [[nodiscard]] bool receives_from(int rank, int owner) const;

 private:
  std::vector<int> host_of_, local_rank_;  ///< by rank
  std::vector<std::vector<int>> ranks_;    ///< by host
};

/// The host name, or LOCKSTEP_HOST_ID where it is set (for tests of several pretended hosts on one machine).
[[nodiscard]] std::string host_identity();

/// "rank 2 (host b)"
[[nodiscard]] std::string describe(const Topology& topology, int rank);

/// A wait that ended without what it waited for: "rank 1 on host a: waited 60.0 s for rank 2 (host b) in
/// 'reduce' of step 17: `missing`. ..." `peer` -1: any of the others.
[[noreturn]] void throw_deadline(const Topology& topology, int rank, int peer, const Operation& operation,
                                 double seconds, const std::string& missing = "");

/// How often a wait looks up from what it waits for: whether its rank has failed, or it is stopped.
inline constexpr std::chrono::milliseconds kCheckInterval{100};

/// Throws if nobody wants the operation any more. Whoever stopped it has an error of its own, which is the one to tell.
void throw_if_stopped(const Topology& topology, int rank, const Operation& operation);

/// The moment at which an operation that starts now must be over.
[[nodiscard]] inline Clock::time_point deadline_of(const Operation& operation) {
  return Clock::now() + operation.timeout;
}

}  // namespace lockstep::comm
