#include "comm/transport/hosts.hpp"

namespace lockstep::comm {

Hosts::Hosts(const Topology& topology) : host_of_(topology.host_of), ranks_(topology.host_names.size()) {
  for (std::size_t rank = 0; rank < host_of_.size(); ++rank) {
    std::vector<int>& beside = ranks_[static_cast<std::size_t>(host_of_[rank])];
    local_rank_.push_back(static_cast<int>(beside.size()));
    beside.push_back(static_cast<int>(rank));
  }
}

int Hosts::leader(int host, int owner) const {
  const std::vector<int>& there = ranks(host);
  return there[static_cast<std::size_t>(local_rank(owner)) % there.size()];
}

}  // namespace lockstep::comm
