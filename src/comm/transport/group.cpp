#include "comm/transport/group.hpp"

#include <algorithm>
#include <cstdlib>

#include "comm/transport/topology.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

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
  rank_ = found - ranks_.begin();
}

void GroupCommunicator::abort(int exit_code) {
  all_.abort(exit_code);
  std::abort();  // in case it has returned
}

}  // namespace lockstep::comm
