// MPI, from start to end, as a Communicator.
#pragma once

#include <memory>
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

}  // namespace lockstep::comm
