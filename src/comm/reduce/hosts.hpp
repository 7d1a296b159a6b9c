// Ranks by host, and what a host adds before it sends.
//
// A network is slower than what joins the ranks of a host. So each slice of a bucket has a leader on every host (on its
// owner's host: the owner). The ranks of a host give the leader their partial sums of the slice, it adds those that
// the tree puts together, and sends the owner what is left. Shards are placed by host (comm/assignment.hpp), so
// that is as little as of one rank, however many ranks the host has. The finished slice comes back the same way.
#pragma once

#include <span>
#include <vector>

#include "comm/reduce/assignment.hpp"
#include "comm/reduce/tree.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::comm {

class Hosts {
 public:
  explicit Hosts(const Topology& topology);
  [[nodiscard]] int count() const { return static_cast<int>(ranks_.size()); }
  /// Ascending.
  [[nodiscard]] const std::vector<int>& ranks(int host) const { return ranks_[static_cast<std::size_t>(host)]; }
  [[nodiscard]] int host_of(int rank) const { return host_of_[static_cast<std::size_t>(rank)]; }
  /// Its position among the ranks of its host; Topology::local_rank() looks at all ranks for it.
  [[nodiscard]] int local_rank(int rank) const { return local_rank_[static_cast<std::size_t>(rank)]; }
  /// The leader of the owner's slices: on each host the rank of the same place among its host's, so that slices of
  /// hosts alike never leave their rail (adapters of one place on all hosts, which share a switch).
  [[nodiscard]] int leader(int host, int owner) const;

 private:
  std::vector<int> host_of_, local_rank_;  ///< by rank
  std::vector<std::vector<int>> ranks_;    ///< by host
};

/// The sum of one of a rank's maximal subtrees; roots are numbered in their order.
struct Partial {
  int rank = 0;
  int root = 0;
  TreeNode node;
};

/// Of these ranks, by rank and root.
[[nodiscard]] std::vector<Partial> partials_of(const Tree& tree, const Assignment& assignment,
                                               std::span<const int> ranks);

/// The sum of one of the maximal subtrees of all shards of a host.
struct HostSum {
  TreeNode node;
  std::vector<Partial> parts;       ///< that make it; by rank and root
  std::vector<Addition> additions;  ///< of the parts; none: the one part is the sum
};

[[nodiscard]] std::vector<HostSum> sums_of_host(const Tree& tree, const Assignment& assignment,
                                                std::span<const int> ranks);

/// The nodes of partial or host sums, in their order.
template <class Sums>
[[nodiscard]] std::vector<TreeNode> nodes_of(const Sums& sums) {
  std::vector<TreeNode> nodes;
  for (const auto& sum : sums) nodes.push_back(sum.node);
  return nodes;
}

}  // namespace lockstep::comm
