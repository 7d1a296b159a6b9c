#include "observe/flight.hpp"

#include "comm/transport/recorded.hpp"

namespace lockstep::observe {

void write_flight(const Job& job, Communicator& communicator) {
  const auto recorder = comm::recorder_of(communicator);
  if (!recorder || communicator.size() == 1) return;
  const int rank = communicator.rank();
  (void)dump_flight(*recorder, job.run_directory + "/flight", rank, communicator.topology().host_name(rank));
}

}  // namespace lockstep::observe
