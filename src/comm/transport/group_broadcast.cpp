#include "comm/transport/group_broadcast.hpp"

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::comm {

void broadcast_in_group(Communicator& communicator, std::span<const int> group, std::span<std::byte> bytes, int tag,
                        const Operation& operation) {
  const auto found = std::find(group.begin(), group.end(), communicator.rank());
  LOCKSTEP_CHECK(found != group.end(), "a broadcast is called by the ranks that it is for");
  const auto place = static_cast<std::size_t>(found - group.begin());
  std::size_t distance = 1;
  while (distance < group.size() && (place & distance) == 0) distance *= 2;
  if (place != 0) communicator.receive(bytes, group[place - distance], tag)->wait(operation);

  std::vector<std::unique_ptr<Transfer>> sent;
  for (distance /= 2; distance >= 1; distance /= 2) {
    if (place + distance < group.size()) sent.push_back(communicator.send(bytes, group[place + distance], tag));
  }
  for (const auto& transfer : sent) transfer->wait(operation);
}

}  // namespace lockstep::comm
