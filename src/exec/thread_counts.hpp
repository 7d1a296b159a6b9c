// How many threads compute on a rank.
#pragma once

#include "exec/device.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::exec {

/// `threads` of the job, or, where they are 0, the device's default for this rank's part of its host's cores; never
/// more than its shards.
[[nodiscard]] int worker_count(int threads, const Communicator& communicator, const exec::Device& device,
                               std::size_t shards);

/// Background threads that may read and decode for this rank: its part of this host's cores but one.
[[nodiscard]] int most_loader_threads(const Communicator& communicator);

}  // namespace lockstep::exec
