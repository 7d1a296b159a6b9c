// Making Topology from what each rank calls its host, and the words that messages use for ranks and hosts.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/spans.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::comm {

/// `host_of_rank`: each rank's host by name.
[[nodiscard]] Topology make_topology(const std::vector<std::string>& host_of_rank);

/// The host name, or LOCKSTEP_HOST_ID where it is set (for tests of several pretended hosts on one machine).
[[nodiscard]] std::string host_identity();

/// "rank 2 (host b)"
[[nodiscard]] std::string describe(const Topology& topology, int rank);

/// A wait that ended without what it waited for: "rank 1 on host a: waited 60.0 s for rank 2 (host b) in
/// 'reduce' of step 17: `missing`. ..." `peer` -1: any of the others.
[[noreturn]] void throw_deadline(const Topology& topology, int rank, int peer, const Operation& operation,
                                 double seconds, const std::string& missing = "");

/// The moment at which an operation that starts now must be over.
[[nodiscard]] inline Clock::time_point deadline_of(const Operation& operation) {
  return Clock::now() + operation.timeout;
}

}  // namespace lockstep::comm
