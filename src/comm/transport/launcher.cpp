#include "comm/transport/launcher.hpp"

#include <cstdlib>

namespace lockstep::comm {

LauncherInfo launcher_info() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const char* value = std::getenv(variable)) return {std::atoi(value), variable};
  }
  // Slurm says its number of tasks also to a batch script, which runs once. A step has an id.
  if (std::getenv("SLURM_STEP_ID") != nullptr) {
    for (const char* variable : {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}) {
      if (const char* value = std::getenv(variable)) return {std::atoi(value), variable};
    }
  }
  if (std::getenv("PMIX_RANK") != nullptr) return {0, "PMIX_RANK"};
  return {};
}

}  // namespace lockstep::comm
