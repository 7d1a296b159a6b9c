#include "comm/slice_plan.hpp"

namespace lockstep::comm {

namespace {

void add_sends(SlicePlan& plan, int roots, int rank, std::span<const std::int64_t> bounds) {
  const int ranks = static_cast<int>(bounds.size()) - 1;
  for (int root = 0; root < roots; ++root) {
    for (int i = 1; i < ranks; ++i) {  // from the next rank on, so that not all send to the same one first
      const int owner = (rank + i) % ranks;
      const std::int64_t first = bounds[static_cast<std::size_t>(owner)];
      const std::int64_t count = bounds[static_cast<std::size_t>(owner) + 1] - first;
      if (count > 0) plan.sends.push_back({owner, root, first, count});
    }
  }
}

}  // namespace

SlicePlan slice_plan(const Tree& tree, const Assignment& assignment, int rank, std::span<const std::int64_t> bounds) {
  SlicePlan plan;
  const auto self = static_cast<std::size_t>(rank);
  plan.first = bounds[self];
  plan.count = bounds[self + 1] - plan.first;
  std::vector<TreeNode> nodes;
  for (std::size_t r = 0; r < assignment.shards_of_rank.size(); ++r) {
    const auto subtrees = tree.maximal_subtrees(assignment.shards_of_rank[r]);
    if (r == self) add_sends(plan, static_cast<int>(subtrees.size()), rank, bounds);
    if (plan.count == 0) continue;
    for (std::size_t root = 0; root < subtrees.size(); ++root) {
      nodes.push_back(subtrees[root]);
      if (r == self) {
        plan.partials.push_back({static_cast<int>(root), 0});
        continue;
      }
      plan.partials.push_back({-1, plan.receive_elements});
      plan.receives.push_back({static_cast<int>(r), plan.receive_elements});
      plan.receive_elements += plan.count;
    }
  }
  if (plan.count > 0) plan.additions = combine_order(tree, nodes);
  return plan;
}

}  // namespace lockstep::comm
