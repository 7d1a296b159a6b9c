#include "comm/transport/clock_offset.hpp"

#include <bit>
#include <span>

#include "comm/transport/point_to_point.hpp"
#include "comm/transport/topology.hpp"

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

// Answers in rank 0's time.
void answer(Communicator& communicator, int rank, const ClockOffset& own, const Operation& operation,
            const std::function<double()>& clock) {
  for (int round = 0; round < kRounds; ++round) {
    (void)receive(communicator, rank, operation);
    send(communicator, clock() + own.seconds, rank, operation);
  }
  send(communicator, own.error, rank, operation);
}

ClockOffset ask(Communicator& communicator, int rank, const Operation& operation,
                const std::function<double()>& clock) {
  ClockOffset best;
  for (int round = 0; round < kRounds; ++round) {
    const double asked = clock();
    send(communicator, asked, rank, operation);
    const double answer = receive(communicator, rank, operation);
    const double heard = clock(), error = (heard - asked) / 2;
    if (round == 0 || error < best.error) best = {heard, answer - (asked + heard) / 2, error};
  }
  best.error += receive(communicator, rank, operation);
  return best;
}

// A binomial tree of hosts: in round k, hosts 2^k ... 2^(k+1) - 1 ask those 2^k before them.
ClockOffset offset_of_host(Communicator& communicator, const Hosts& hosts, const Operation& operation,
                           const std::function<double()>& clock) {
  const unsigned host = hosts.host_of(communicator.rank());
  const auto leader = [&](unsigned other) { return hosts.ranks(other).front(); };
  ClockOffset own{.at = clock(), .seconds = 0, .error = 0};
  if (host > 0) own = ask(communicator, leader(host - std::bit_floor(host)), operation, clock);
  for (unsigned apart = std::bit_ceil(host + 1); host + apart < static_cast<unsigned>(hosts.count()); apart *= 2) {
    answer(communicator, leader(host + apart), own, operation, clock);
  }
  return own;
}

}  // namespace

ClockOffset clock_offset(Communicator& communicator, std::chrono::milliseconds timeout,
                         const std::function<double()>& clock) {
  const Operation operation{"clock", 0, timeout};
  const Hosts hosts(communicator.topology());
  const auto& ranks = hosts.ranks(hosts.host_of(communicator.rank()));
  ClockOffset offset;
  if (communicator.rank() == ranks.front()) offset = offset_of_host(communicator, hosts, operation, clock);
  broadcast_in_group(communicator, ranks, std::as_writable_bytes(std::span(&offset, 1)), kClockTag, operation);
  return offset;
}

}  // namespace lockstep::comm
