// `lockstep train --ranks N`: the program starts itself under mpirun, with the flags that this Open MPI needs.
#pragma once

#include <string>

namespace lockstep::cli {

/// "3" -> 3; "auto" -> one rank per GPU, else one with all cores. Throws Error(usage) for anything else.
[[nodiscard]] int rank_count(const std::string& text);

/// Runs this very command line under mpirun with `ranks` ranks and returns its exit code. SIGTERM and SIGINT are
/// passed on as SIGUSR1, since mpirun itself turns them into a kill after 1 s.
int run_under_mpirun(int ranks);

}  // namespace lockstep::cli
