// Ranks as processes: the same program runs alone and under mpirun, and ends with the same bits.
//   mpi [key=value...]
//   mpirun -n 2 mpi [key=value...]
#include <lockstep/mpi.hpp>

#include "example.hpp"

int main(int argc, char** argv) {
  const std::vector<std::string> overrides(argv + 1, argv + argc);
  return lockstep::run_on_mpi([&](lockstep::Communicator& communicator) {
    const auto registries = lockstep::Registries::built_in();
    const lockstep::JobFile job = digits(registries, overrides);
    const lockstep::TrainResult result = lockstep::train_job(job, communicator, registries);
    if (communicator.rank() == 0) std::printf("%s\n", result.parameters_sha256.c_str());
    return 0;
  });
}
