// What `lockstep bench hosts` does on each rank: one report on what a job would stand on.
#pragma once

#include <string>

#include "cli/host_verdicts.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::cli {

/// `wanted`: cpu, or cuda, which wants a GPU for each rank. Rank 0 prints. Throws Error on rank 0 where something is
/// wrong, once the whole report is printed.
int report_hosts(Communicator& communicator, const HostLimits& limits, const std::string& wanted);

}  // namespace lockstep::cli
