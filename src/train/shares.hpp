// How many threads compute on a rank.
#pragma once

#include "lockstep/communicator.hpp"
#include "lockstep/job.hpp"

namespace lockstep::train {

/// `threads`, or this rank's part of its host's cores; never more than its shards.
[[nodiscard]] int worker_count(const Job& job, const Communicator& communicator, std::size_t shards);

/// Background threads that may read and decode for this rank: its part of this host's cores but one.
[[nodiscard]] int most_loader_threads(const Communicator& communicator);

}  // namespace lockstep::train
