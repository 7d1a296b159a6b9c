// `lockstep train --ranks N`: the program starts itself under mpirun, with the flags that this Open MPI needs.
#pragma once

#include <string>

namespace lockstep::cli {

/// "3" -> 3; "auto" -> one rank per GPU, else one with all cores. Throws Error(usage) for anything else.
[[nodiscard]] int rank_count(const std::string& text);

/// Runs this very command line under mpirun with `ranks` ranks and returns its exit code. The first SIGTERM or SIGINT
/// is passed on as SIGUSR1, since mpirun itself turns them into a kill after 1 s; a second signal is that kill, and the
/// code then 128 + its number.
int run_under_mpirun(int ranks);

}  // namespace lockstep::cli
