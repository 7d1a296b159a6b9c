#include "comm/transport/group.hpp"

#include <algorithm>
#include <cstdlib>

#include "comm/transport/topology.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

constexpr int kReduceTag = kFirstInternalTag + 18;

Topology topology_of(const Topology& all, const std::vector<int>& ranks) {
  std::vector<std::string> hosts;
  for (const int rank : ranks) hosts.push_back(all.host_name(rank));
  Topology topology = make_topology(hosts);
  topology.numbers = ranks;
  return topology;
}

}  // namespace

GroupCommunicator::GroupCommunicator(Communicator& all, std::vector<int> ranks)
    : all_(all), ranks_(std::move(ranks)), topology_(topology_of(all.topology(), ranks_)) {
  const auto found = std::find(ranks_.begin(), ranks_.end(), all.rank());
  LOCKSTEP_CHECK(found != ranks_.end(), "a group is made by the ranks that are in it");
  rank_ = static_cast<int>(found - ranks_.begin());
}

void GroupCommunicator::abort(int exit_code) {
  all_.abort(exit_code);
  std::abort();  // it has not come back
}

void GroupCommunicator::all_reduce_sum(std::span<float> values, const Operation& operation) {
  if (rank_ != 0) {
    send(std::as_bytes(values), 0, kReduceTag)->wait(operation);
  } else {
    std::vector<float> other(values.size());
    for (int r = 1; r < size(); ++r) {
      receive(std::as_writable_bytes(std::span(other)), r, kReduceTag, {})->wait(operation);
      for (std::size_t i = 0; i < other.size(); ++i) values[i] += other[i];
    }
  }
  broadcast(std::as_writable_bytes(values), 0, operation);
}

}  // namespace lockstep::comm
