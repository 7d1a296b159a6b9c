// Work that one rank of each host does for the others of it: indexing the data.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "lockstep/communicator.hpp"

namespace lockstep::comm {

/// Until the first meeting of all ranks: one host may have to index for hours what another has in its cache.
inline constexpr std::chrono::hours kStartDeadline{24};

/// Every rank calls it. On the lowest rank of each host `make` runs, and what it returns is returned on all ranks of
/// that host; an Error that it throws is thrown on all of them.
std::string make_once_a_host(Communicator& communicator, const std::function<std::string()>& make);

}  // namespace lockstep::comm
