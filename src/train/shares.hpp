// Shares: which rank computes which shards, and on how many threads.
#pragma once

#include <cstddef>

#include "comm/assignment.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/job.hpp"

namespace lockstep::train {

/// What the run begins with: equal shares, or by the job's weights (of a host, else of a processor model, else 1).
[[nodiscard]] comm::Assignment first_assignment(const Job& job, const Communicator& communicator);

/// Threads that compute on this rank: `threads`, or its part of this host's cores; never more than its shards.
[[nodiscard]] int worker_count(const Job& job, const Communicator& communicator, std::size_t shards);

/// Background threads that may read and decode for this rank: its part of this host's cores but one.
[[nodiscard]] int most_loader_threads(const Communicator& communicator);

}  // namespace lockstep::train
