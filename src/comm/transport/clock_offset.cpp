#include "comm/transport/clock_offset.hpp"

#include <span>

namespace lockstep::comm {

namespace {

constexpr int kRounds = 32;
constexpr int kClockTag = 11;

void send(Communicator& communicator, double value, int to, const Operation& operation) {
  communicator.send(std::as_bytes(std::span(&value, 1)), to, kClockTag)->wait(operation);
}

double receive(Communicator& communicator, int from, const Operation& operation) {
  double value = 0;
  communicator.receive(std::as_writable_bytes(std::span(&value, 1)), from, kClockTag)->wait(operation);
  return value;
}

void answer(Communicator& communicator, int rank, const Operation& operation, const std::function<double()>& clock) {
  for (int round = 0; round < kRounds; ++round) {
    (void)receive(communicator, rank, operation);
    send(communicator, clock(), rank, operation);
  }
}

ClockOffset ask(Communicator& communicator, const Operation& operation, const std::function<double()>& clock) {
  ClockOffset best;
  for (int round = 0; round < kRounds; ++round) {
    const double asked = clock();
    send(communicator, asked, 0, operation);
    const double answer = receive(communicator, 0, operation);
    const double heard = clock(), error = (heard - asked) / 2;
    if (round == 0 || error < best.error) best = {heard, answer - (asked + heard) / 2, error};
  }
  return best;
}

}  // namespace

ClockOffset clock_offset(Communicator& communicator, std::chrono::milliseconds timeout,
                         const std::function<double()>& clock) {
  const Operation operation{"clock", 0, timeout};
  const Topology& topology = communicator.topology();
  if (communicator.rank() == 0) {
    for (int r = 1; r < communicator.size(); ++r) {
      if (!topology.same_host(0, r)) answer(communicator, r, operation, clock);
    }
  } else if (!topology.same_host(0, communicator.rank())) {
    return ask(communicator, operation, clock);
  }
  return {.at = clock(), .seconds = 0, .error = 0};
}

}  // namespace lockstep::comm
