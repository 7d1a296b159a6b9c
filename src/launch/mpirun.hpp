// The command line of mpirun, for Open MPI 4 and 5.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/hosts.hpp"

namespace lockstep::launch {

struct MpirunOptions {
  int ranks = 1;
  Hosts hosts = {};                                     ///< empty: all ranks on this machine
  std::string agent = {};                               ///< runs a command on another host; empty: mpirun's own choice
  std::map<std::string, std::string> environment = {};  ///< for the ranks; sent to other hosts in clear
  std::map<std::string, std::string> secrets = {};      ///< for ranks of this host alone
  bool by_slurm = false;                                ///< mpirun starts its daemons by Slurm's srun
  std::string mark = {};                                ///< on the command line of every helper process, to identify it
};

/// mpirun and its flags, without the program to run. `open_mpi_major`: 4 or 5.
[[nodiscard]] std::vector<std::string> mpirun_command(const MpirunOptions& options, int open_mpi_major);

/// The same for the Open MPI that this program has loaded.
[[nodiscard]] std::vector<std::string> mpirun_command(const MpirunOptions& options);

/// Variables for the libraries that move bytes between ranks (NCCL and its plugins, libfabric, UCX), to be passed to
/// the ranks of all hosts. `environment`: as environ.
[[nodiscard]] std::map<std::string, std::string> passed_on_variables(const char* const* environment);

/// What mpirun needs in its own environment: settings whose names differ between its major versions.
[[nodiscard]] std::map<std::string, std::string> mpirun_environment(const MpirunOptions& options);

/// What makes this version of mpirun crash on this host: "; ...", or "".
[[nodiscard]] std::string why_mpirun_fails();

}  // namespace lockstep::launch
