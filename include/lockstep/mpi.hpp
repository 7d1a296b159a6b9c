// Ranks as processes: a program that mpirun starts once for each.
#pragma once

#include <exception>
#include <functional>

#include "lockstep/communicator.hpp"

namespace lockstep {

/// Prints one message on stderr, "<program>: rank 1 on host a: ...", without the rank where there is one alone, and
/// returns the exit code of the error.
int report_error(const std::exception& error, const Communicator& communicator);

/// What main() does in a program on several ranks: calls `body` with a communicator over MPI and returns the process's
/// exit code. A process that no launcher started is one rank alone, without MPI. An error of one rank ends all:
/// `report` prints it and returns the exit code. Once per process; MPI's calls are made by a thread of its own, not by
/// `body`, so MPI must not have started yet: else it throws Error(usage). A program that uses MPI itself has a
/// Communicator of its own instead.
int run_on_mpi(const std::function<int(Communicator&)>& body,
               const std::function<int(const std::exception&, const Communicator&)>& report = report_error);

}  // namespace lockstep
