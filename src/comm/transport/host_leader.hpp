// Work that one rank of each host does for the others on it, such as indexing the data.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "lockstep/communicator.hpp"

namespace lockstep::comm {

/// Deadline until all ranks first meet: one host may need hours to index what another has in its cache.
inline constexpr std::chrono::hours kStartDeadline{24};

/// Collective. Runs `make` on the lowest rank of each host, and returns its result on all ranks of that host; if it
/// throws an Error, all of them throw it.
std::string make_once_a_host(Communicator& communicator, const std::function<std::string()>& make);

}  // namespace lockstep::comm
