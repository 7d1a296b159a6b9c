// Was this process started as one of several ranks? Read from what launchers leave in the environment.
#pragma once

#include <string>

namespace lockstep::comm {

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
