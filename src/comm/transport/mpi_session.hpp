// MPI, from start to end, as a Communicator; and whether a launcher has started this process as one of several ranks,
// read from what it leaves in the environment.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/communicator.hpp"

namespace lockstep::comm {

/// Starts MPI on a thread of its own, which makes all MPI calls. Once per process. Destroying it ends MPI: at
/// once if all ranks come to it; when unwinding from an error it does not wait long for the others, and never
/// hangs in MPI_Finalize.
[[nodiscard]] std::unique_ptr<Communicator> make_mpi_communicator();

/// Some ranks of a communicator of MPI, ascending, as one of their own, with its own numbers for them. Each of them
/// calls it, and nobody else; `all` must live longer.
[[nodiscard]] std::unique_ptr<Communicator> make_mpi_group(Communicator& all, const std::vector<int>& ranks);

/// 4 or 5, as the library says at run time; 0: not Open MPI.
[[nodiscard]] int open_mpi_major();

struct LauncherInfo {
  int ranks = 1;         ///< ranks that the launcher started; 0: a launcher that does not say
  std::string variable;  ///< where that was read: "OMPI_COMM_WORLD_SIZE"; empty: no launcher
};

[[nodiscard]] LauncherInfo launcher_info();

/// More than one rank was started (or a launcher does not say how many), so MPI must be used.
[[nodiscard]] inline bool launched_by_mpi() {
  return launcher_info().ranks != 1;
}

}  // namespace lockstep::comm
