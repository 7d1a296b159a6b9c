// What a host adds before it sends.
//
// A network is slower than what joins the ranks of a host. So each slice of a bucket has a leader on every host (on its
// owner's host: the owner). The ranks of a host give the leader their partial sums of the slice, it adds those that
// the tree puts together, and sends the owner what is left. Shards are placed by host
// (comm/reduce/shard_assignment.hpp), so that is as little as of one rank, however many ranks the host has. The
// finished slice comes back the same way.
#pragma once

#include <span>
#include <vector>

#include "comm/reduce/shard_assignment.hpp"
#include "comm/reduce/tree.hpp"
#include "comm/transport/hosts.hpp"

namespace lockstep::comm {

/// The sum of one of a rank's maximal subtrees; roots are numbered in their order.
struct Partial {
  int rank = 0;
  int root = 0;
  TreeNode node;
};

/// Of these ranks, by rank and root.
[[nodiscard]] std::vector<Partial> partials_of(const Tree& tree, const ShardAssignment& assignment,
                                               std::span<const int> ranks);

/// The sum of one of the maximal subtrees of all shards of a host.
struct HostSum {
  TreeNode node;
  std::vector<Partial> parts;       ///< that make it; by rank and root
  std::vector<Addition> additions;  ///< of the parts; none: the one part is the sum
};

[[nodiscard]] std::vector<HostSum> sums_of_host(const Tree& tree, const ShardAssignment& assignment,
                                                std::span<const int> ranks);

/// The nodes of partial or host sums, in their order.
template <class Sums>
[[nodiscard]] std::vector<TreeNode> nodes_of(const Sums& sums) {
  std::vector<TreeNode> nodes;
  for (const auto& sum : sums) nodes.push_back(sum.node);
  return nodes;
}

}  // namespace lockstep::comm
