#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "comm/transport/mpi_session.hpp"
#include "core/say.hpp"
#include "lockstep/error.hpp"
#include "lockstep/mpi.hpp"

namespace lockstep {

namespace {

/// How long other ranks wait for the first rank to report: an error that all ranks have is reported once, even on a
/// busy machine.
constexpr std::chrono::seconds kFirstWord{2};

void require_all_ranks(int found) {
  const auto launcher = comm::launcher_info();
  if (launcher.ranks > 1 && found != launcher.ranks) {
    throw Error(
        ExitCode::usage,
        fmt::format("{}={} says that {} ranks were started, but MPI sees {}; start lockstep with the mpirun of the "
                    "MPI that it was built with",
                    launcher.variable, launcher.ranks, launcher.ranks, found));
  }
}

}  // namespace

int report_error(const std::exception& error, const Communicator& communicator) {
  std::string who = program_invocation_short_name;
  if (communicator.size() > 1) {
    const int rank = communicator.rank();
    who += fmt::format(": rank {} on host {}", rank, communicator.topology().host_name(rank));
  }
  say("{}: {}\n", who, error.what());
  return exit_code(error);
}

int run_on_mpi(const std::function<int(Communicator&)>& body,
               const std::function<int(const std::exception&, const Communicator&)>& report) {
  const auto communicator = comm::launched_by_mpi() ? comm::make_mpi_communicator() : make_single_communicator();
  try {
    require_all_ranks(communicator->size());
    return body(*communicator);
  } catch (const std::exception& error) {
    if (communicator->rank() != 0) std::this_thread::sleep_for(kFirstWord);
    const int code = report(error, *communicator);
    if (communicator->size() > 1) communicator->abort(code);
    return code;
  }
}

}  // namespace lockstep
