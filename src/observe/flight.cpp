#include "observe/flight.hpp"

#include "comm/transport/recorded.hpp"

namespace lockstep::observe {

void write_flight(const std::string& run_directory, Communicator& communicator) {
  const auto recorder = comm::recorder_of(communicator);
  if (!recorder || communicator.size() == 1) return;
  const int rank = communicator.rank();
  (void)dump_flight(*recorder, run_directory + "/flight", rank, communicator.topology().host_name(rank));
}

}  // namespace lockstep::observe
