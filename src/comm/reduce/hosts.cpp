#include "comm/reduce/hosts.hpp"

#include <algorithm>
#include <iterator>

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

std::vector<Partial> partials_of(const Tree& tree, const Assignment& assignment, std::span<const int> ranks) {
  std::vector<Partial> partials;
  for (const int rank : ranks) {
    int root = 0;
    for (const TreeNode node : tree.maximal_subtrees(assignment.shards_of_rank.at(static_cast<std::size_t>(rank)))) {
      partials.push_back({rank, root++, node});
    }
  }
  return partials;
}

std::vector<HostSum> sums_of_host(const Tree& tree, const Assignment& assignment, std::span<const int> ranks) {
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
