// MPI, from start to end, as a Communicator; and whether a launcher has started this process as one of several ranks,
// according to the environment that it sets.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/communicator.hpp"

namespace lockstep::comm {

/// Starts MPI on a thread of its own, which makes all MPI calls. Once per process. Destroying it ends MPI, as soon as
/// all ranks do so; when unwinding from an error, it waits only briefly for the others, and never hangs in
/// MPI_Finalize.
[[nodiscard]] std::unique_ptr<Communicator> make_mpi_communicator();

/// Some ranks of an MPI communicator, ascending, as a communicator with its own rank numbers. Collective over these
/// ranks only; `all` must outlive it.
[[nodiscard]] std::unique_ptr<Communicator> make_mpi_group(Communicator& all, const std::vector<int>& ranks);

/// 4 or 5, as reported by the library at run time; 0: not Open MPI.
[[nodiscard]] int open_mpi_major();

struct LauncherInfo {
  int ranks = 1;         ///< ranks that the launcher started; 0: the launcher does not tell
  std::string variable;  ///< the variable that told so: "OMPI_COMM_WORLD_SIZE"; empty: no launcher
};

[[nodiscard]] LauncherInfo launcher_info();

/// Whether more than one rank was started (or the launcher does not tell how many), so that MPI must be used.
[[nodiscard]] inline bool launched_by_mpi() {
  return launcher_info().ranks != 1;
}

}  // namespace lockstep::comm
