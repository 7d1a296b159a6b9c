#include "comm/reduce/host_sums.hpp"

#include <algorithm>
#include <iterator>

namespace lockstep::comm {

std::vector<Partial> partials_of(const Tree& tree, const ShardAssignment& assignment, std::span<const int> ranks) {
  std::vector<Partial> partials;
  for (const int rank : ranks) {
    int root = 0;
    for (const TreeNode node : tree.maximal_subtrees(assignment.shards_of_rank.at(static_cast<std::size_t>(rank)))) {
      partials.push_back({rank, root++, node});
    }
  }
  return partials;
}

std::vector<HostSum> sums_of_host(const Tree& tree, const ShardAssignment& assignment, std::span<const int> ranks) {
  std::vector<int> shards;
  for (const int rank : ranks) {
    const auto& mine = assignment.shards_of_rank.at(static_cast<std::size_t>(rank));
    shards.insert(shards.end(), mine.begin(), mine.end());
  }
  const auto partials = partials_of(tree, assignment, ranks);
  std::vector<HostSum> sums;
  for (const TreeNode node : tree.maximal_subtrees(shards)) {
    HostSum& sum = sums.emplace_back();
    sum.node = node;
    std::copy_if(partials.begin(), partials.end(), std::back_inserter(sum.parts), [&](const Partial& part) {
      return tree.first(node) <= tree.first(part.node) && tree.end(part.node) <= tree.end(node);
    });
    sum.additions = combine_order(tree, node, nodes_of(sum.parts));
  }
  return sums;
}

}  // namespace lockstep::comm
