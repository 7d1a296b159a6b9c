// The reduction tree over V leaves (micro-batches). It fixes the association of every gradient sum, whoever adds, and
// so determines what is added: the micro-batches of a rank (MergePlan), and the partial sums of several ranks
// (combine_order). The additions themselves are in comm/reduce/tree_sums.hpp.
//
// Node (level, index) covers the leaves [index * 2^level, min(V, (index + 1) * 2^level)). A node whose sibling is empty
// is promoted: it also stands for its parent. Nodes are named here by the lowest level that has their leaves, so that
// equal leaves mean equal names. The sum of a node is left + right in fp32.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::comm {

struct TreeNode {
  int level = 0;
  int index = 0;
  auto operator<=>(const TreeNode&) const = default;
};

class Tree {
 public:
  explicit Tree(int leaves);
  int leaves() const { return leaves_; }
  TreeNode root() const { return root_; }
  int first(TreeNode node) const { return node.index << node.level; }
  int end(TreeNode node) const;
  int size(TreeNode node) const { return end(node) - first(node); }
  /// Children of an inner node (level > 0); both cover at least one leaf.
  TreeNode left(TreeNode node) const { return canonical({node.level - 1, 2 * node.index}); }
  TreeNode right(TreeNode node) const { return canonical({node.level - 1, 2 * node.index + 1}); }

  /// The fewest nodes that cover exactly these micro-batches (each listed once, in any order): largest first, then by
  /// first leaf. O(n log V) for n micro-batches.
  std::vector<TreeNode> maximal_subtrees(const std::vector<int>& micro_batches) const;

 private:
  TreeNode canonical(TreeNode node) const;
  int leaves_;
  TreeNode root_;
};

/// slot[out] = slot[left] + slot[right]. Slots 0 ... n - 1 are the given partial sums; n + i is the result of addition
/// i.
struct Addition {
  int out = 0;
  int left = 0;
  int right = 0;
};

/// The additions that compute a node's sum from partial sums that together cover each of its leaves once, operands
/// first; none for a single partial. At any time, at most as many results wait as the tree has levels.
[[nodiscard]] std::vector<Addition> combine_order(const Tree& tree, TreeNode node, std::span<const TreeNode> partials);

/// Which sums to build from which micro-batches.
struct MergePlan {
  struct Node {
    int parent = -1;  ///< -1: a root
    int sibling = -1;
    bool is_left = false;
    int root = -1;  ///< for a root: its number
  };
  std::vector<Node> nodes;
  std::vector<int> leaf_of_micro_batch;  ///< its node; -1: not a micro-batch of this rank
  std::vector<int> memory_of_leaf;  ///< by micro-batch: the root that is stored in this micro-batch's memory; -1: its
                                    ///< memory comes from the pool
  int roots = 0;
};

/// One root for each of these subtrees.
[[nodiscard]] MergePlan tree_plan(const Tree& tree, const std::vector<TreeNode>& subtrees);
/// One root: the sum of the micro-batches one after the other, as listed.
[[nodiscard]] MergePlan chain_plan(int all_micro_batches, const std::vector<int>& micro_batches);

}  // namespace lockstep::comm
