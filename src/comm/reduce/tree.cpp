#include "comm/reduce/tree.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "lockstep/error.hpp"

namespace lockstep::comm {

Tree::Tree(int leaves) : leaves_(leaves) {
  LOCKSTEP_CHECK(leaves >= 1, "a tree needs a leaf");
  root_ = canonical({static_cast<int>(std::bit_width(static_cast<unsigned>(leaves - 1))), 0});
}

int Tree::end(TreeNode node) const {
  return std::min(leaves_, (node.index + 1) << node.level);
}

TreeNode Tree::canonical(TreeNode node) const {
  while (node.level > 0 && ((2 * node.index + 1) << (node.level - 1)) >= leaves_)
    node = {node.level - 1, 2 * node.index};
  return node;
}

std::vector<TreeNode> Tree::maximal_subtrees(const std::vector<int>& micro_batches) const {
  std::vector<int> sorted = micro_batches;
  std::sort(sorted.begin(), sorted.end());
  LOCKSTEP_CHECK(sorted.empty() || (sorted.front() >= 0 && sorted.back() < leaves_),
                 "micro-batches must be the tree's");

  struct Open {
    TreeNode node;
    std::vector<int>::const_iterator from, to;  ///< the micro-batches below the node
  };
  std::vector<TreeNode> found;
  std::vector<Open> open = {{root_, sorted.begin(), sorted.end()}};
  while (!open.empty()) {
    const auto [node, from, to] = open.back();
    open.pop_back();
    if (to - from == size(node)) {
      found.push_back(node);
    } else if (from != to) {
      const TreeNode lower = left(node), upper = right(node);
      const auto middle = std::lower_bound(from, to, first(upper));
      open.push_back({upper, middle, to});
      open.push_back({lower, from, middle});
    }
  }
  std::stable_sort(found.begin(), found.end(), [&](TreeNode a, TreeNode b) { return size(a) > size(b); });
  return found;
}

namespace {

struct AdditionOrder {
  const Tree& tree;
  std::map<TreeNode, int> slot_of;
  int partials = 0;
  std::vector<Addition> additions;

  int sum(TreeNode node) {
    if (const auto found = slot_of.find(node); found != slot_of.end()) return found->second;
    LOCKSTEP_CHECK(node.level > 0, "the partial sums must cover every micro-batch of the node");
    const int left = sum(tree.left(node));
    const int right = sum(tree.right(node));
    additions.push_back({partials + static_cast<int>(additions.size()), left, right});
    return additions.back().out;
  }
};

}  // namespace

std::vector<Addition> combine_order(const Tree& tree, TreeNode node, std::span<const TreeNode> partials) {
  AdditionOrder order{tree, {}, static_cast<int>(partials.size()), {}};
  for (std::size_t i = 0; i < partials.size(); ++i) order.slot_of[partials[i]] = i;
  order.sum(node);
  LOCKSTEP_CHECK(order.additions.size() + 1 == partials.size(), "partial sums must not overlap");
  return order.additions;
}

namespace {

struct PlanBuilder {
  MergePlan plan;

  explicit PlanBuilder(int micro_batches) {
    plan.leaf_of_micro_batch.assign(micro_batches, -1);
    plan.memory_of_leaf.assign(micro_batches, -1);
  }
  int node() {
    plan.nodes.emplace_back();
    return static_cast<int>(plan.nodes.size()) - 1;
  }
  MergePlan::Node& at(int node) { return plan.nodes[node]; }
  int leaf(int micro_batch) { return plan.leaf_of_micro_batch[micro_batch] = node(); }
  int join(int left, int right) {
    const int parent = node();
    at(left) = {parent, right, true, -1};
    at(right) = {parent, left, false, -1};
    return parent;
  }
  void root(int node, int first_micro_batch) {
    at(node).root = plan.roots;
    plan.memory_of_leaf[first_micro_batch] = plan.roots++;
  }
  int subtree(const Tree& tree, TreeNode n) {
    if (n.level == 0) return leaf(n.index);
    const int left = subtree(tree, tree.left(n));
    return join(left, subtree(tree, tree.right(n)));
  }
};

}  // namespace

MergePlan tree_plan(const Tree& tree, const std::vector<TreeNode>& subtrees) {
  PlanBuilder builder(tree.leaves());
  for (const TreeNode node : subtrees) builder.root(builder.subtree(tree, node), tree.first(node));
  return std::move(builder.plan);
}

MergePlan chain_plan(int all_micro_batches, const std::vector<int>& micro_batches) {
  PlanBuilder builder(all_micro_batches);
  if (micro_batches.empty()) return std::move(builder.plan);
  int sum = builder.leaf(micro_batches[0]);
  for (std::size_t i = 1; i < micro_batches.size(); ++i) sum = builder.join(sum, builder.leaf(micro_batches[i]));
  builder.root(sum, micro_batches[0]);
  return std::move(builder.plan);
}

}  // namespace lockstep::comm
