// `lockstep train --ranks N`: the program starts itself under mpirun, with the flags that this Open MPI needs.
#pragma once

#include <string>

#include "lockstep/job.hpp"

namespace lockstep::cli {

/// "3" -> 3; "auto" -> `automatic`. Throws Error(usage) for anything else.
[[nodiscard]] int rank_count(const std::string& text, int automatic);

/// What auto means for a job on this machine: with `device: cuda` one rank for each GPU that it may use, no more than
/// there are shards; else one with all cores.
[[nodiscard]] int automatic_ranks(const Job& job);

/// Runs this very command line under mpirun with `ranks` ranks and returns its exit code. The first SIGTERM or SIGINT
/// is passed on as SIGUSR1, since mpirun itself turns them into a kill after 1 s; a second signal is that kill, and the
/// code then 128 + its number.
int run_under_mpirun(int ranks);

}  // namespace lockstep::cli
