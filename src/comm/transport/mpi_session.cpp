#include "comm/transport/mpi_session.hpp"

#include <mpi.h>

#include <cctype>
#include <cstdlib>
#include <string>

namespace lockstep::comm {

int open_mpi_major() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return 0;  // allowed before MPI is started
  const std::string version(text);
  const auto at = version.find("Open MPI v");
  if (at == std::string::npos) return 0;
  const char digit = version.at(at + 10);
  return std::isdigit(static_cast<unsigned char>(digit)) != 0 ? digit - '0' : 0;
}

LauncherInfo launcher_info() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const char* value = std::getenv(variable)) return {std::atoi(value), variable};
  }
  // Slurm also sets its number of tasks for a batch script, which runs only once. Only a step has an id.
  if (std::getenv("SLURM_STEP_ID") != nullptr) {
    for (const char* variable : {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}) {
      if (const char* value = std::getenv(variable)) return {std::atoi(value), variable};
    }
  }
  if (std::getenv("PMIX_RANK") != nullptr) return {0, "PMIX_RANK"};
  return {};
}

}  // namespace lockstep::comm
