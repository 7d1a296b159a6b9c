#include "train/host_leader.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/error.hpp"

namespace lockstep::train {

namespace {

constexpr int kTag = 1;

using Header = std::array<std::int64_t, 2>;  ///< exit code (0: what was made follows; else a message), its length

void send_to_host(Communicator& communicator, std::span<const std::byte> bytes, const Operation& operation) {
  std::vector<std::unique_ptr<Transfer>> sent;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const bool other = rank != communicator.rank();
    if (other && communicator.topology().same_host(rank, communicator.rank())) {
      sent.push_back(communicator.send(bytes, rank, kTag));
    }
  }
  for (const auto& transfer : sent) transfer->wait(operation);
}

void tell(Communicator& communicator, ExitCode code, const std::string& text, const Operation& operation) {
  const Header header{static_cast<std::int64_t>(code), static_cast<std::int64_t>(text.size())};
  send_to_host(communicator, std::as_bytes(std::span(header)), operation);
  if (!text.empty()) send_to_host(communicator, std::as_bytes(std::span(text)), operation);
}

std::string lead(Communicator& communicator, const Operation& operation, const std::function<std::string()>& make) {
  std::string made;
  try {
    made = make();
  } catch (const Error& error) {
    tell(communicator, error.code(), error.what(), operation);
    throw;
  }
  tell(communicator, ExitCode::done, made, operation);
  return made;
}

std::string follow(Communicator& communicator, int leader, const Operation& operation) {
  Header header{};
  communicator.receive(std::as_writable_bytes(std::span(header)), leader, kTag)->wait(operation);
  std::string text(static_cast<std::size_t>(header[1]), '\0');
  if (!text.empty()) communicator.receive(std::as_writable_bytes(std::span(text)), leader, kTag)->wait(operation);
  if (header[0] != 0) throw Error(static_cast<ExitCode>(header[0]), text);
  return text;
}

}  // namespace

int host_leader(const Topology& topology, int rank) {
  int leader = 0;
  while (!topology.same_host(leader, rank)) ++leader;
  return leader;
}

std::string make_once_a_host(Communicator& communicator, const std::function<std::string()>& make) {
  const Operation operation{"index", 0, kStartDeadline};
  const int leader = host_leader(communicator.topology(), communicator.rank());
  return leader == communicator.rank() ? lead(communicator, operation, make) : follow(communicator, leader, operation);
}

}  // namespace lockstep::train
