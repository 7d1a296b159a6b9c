// Ranks as processes: for a program that mpirun starts once per rank.
#pragma once

#include <exception>
#include <functional>

#include "lockstep/communicator.hpp"

namespace lockstep {

/// Prints the error on stderr, "<program>: rank 1 on host a: ..." (without the rank if there is only one), and returns
/// the error's exit code.
int report_error(const std::exception& error, const Communicator& communicator);

/// For main() of a program on several ranks: calls `body` with a communicator over MPI and returns the process's exit
/// code. A process that was not started by an MPI launcher is a single rank, without MPI. An error on one rank ends all
/// ranks: `report` prints it and returns the exit code. Call it once per process. MPI calls are made by a thread of
/// their own, not by `body`, so MPI must not have been initialised yet; else it throws Error(usage). A program that
/// uses MPI itself derives its own Communicator instead.
int run_on_mpi(const std::function<int(Communicator&)>& body,
               const std::function<int(const std::exception&, const Communicator&)>& report = report_error);

}  // namespace lockstep
