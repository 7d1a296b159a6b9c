#include "observe/flight.hpp"

#include "core/flight_recorder.hpp"

namespace lockstep::observe {

void write_flight(const Job& job, Communicator& communicator) {
  const auto recorder = communicator.recorder();
  if (!recorder || communicator.size() == 1) return;
  const int rank = communicator.rank();
  (void)dump_flight(*recorder, job.run_directory + "/flight", rank, communicator.topology().host_name(rank));
}

}  // namespace lockstep::observe
