// Which ranks share a host, and who on a host leads for a rank of another one.
#pragma once

#include <vector>

#include "lockstep/communicator.hpp"

namespace lockstep::comm {

class Hosts {
 public:
  explicit Hosts(const Topology& topology);
  [[nodiscard]] int count() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] int rank_count() const { return static_cast<int>(host_of_.size()); }
  /// Ascending.
  [[nodiscard]] const std::vector<int>& ranks(int host) const { return ranks_[static_cast<std::size_t>(host)]; }
  [[nodiscard]] int host_of(int rank) const { return host_of_[static_cast<std::size_t>(rank)]; }
  /// Its position among the ranks of its host; Topology::local_rank() looks at all ranks for it.
  [[nodiscard]] int local_rank(int rank) const { return local_rank_[static_cast<std::size_t>(rank)]; }
  /// The leader of the owner's slices: on each host the rank of the same local rank, so that slices of hosts alike
  /// never leave their rail (the adapters of one number on all hosts, which share a switch).
  [[nodiscard]] int leader(int host, int owner) const;

 private:
  std::vector<int> host_of_, local_rank_;  ///< by rank
  std::vector<std::vector<int>> ranks_;    ///< by host
};

}  // namespace lockstep::comm
