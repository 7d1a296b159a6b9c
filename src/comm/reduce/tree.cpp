#include "comm/reduce/tree.hpp"

#include <algorithm>
#include <bit>
#include <map>

#include "device/cpu/add.hpp"
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

std::vector<TreeNode> Tree::maximal_subtrees(const std::vector<int>& shards) const {
  std::vector<int> sorted = shards;
  std::sort(sorted.begin(), sorted.end());
  LOCKSTEP_CHECK(sorted.empty() || (sorted.front() >= 0 && sorted.back() < leaves_), "shards must be the tree's");

  struct Open {
    TreeNode node;
    std::vector<int>::const_iterator from, to;  ///< those of the shards that are below the node
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
    LOCKSTEP_CHECK(node.level > 0, "the partial sums must cover every shard of the node");
    const int left = sum(tree.left(node));
    const int right = sum(tree.right(node));
    additions.push_back({partials + static_cast<int>(additions.size()), left, right});
    return additions.back().out;
  }
};

}  // namespace

std::vector<Addition> combine_order(const Tree& tree, TreeNode node, std::span<const TreeNode> partials) {
  AdditionOrder order{tree, {}, static_cast<int>(partials.size()), {}};
  for (std::size_t i = 0; i < partials.size(); ++i) order.slot_of[partials[i]] = static_cast<int>(i);
  order.sum(node);
  LOCKSTEP_CHECK(order.additions.size() + 1 == partials.size(), "partial sums must not overlap");
  return order.additions;
}

namespace {

constexpr std::int64_t kBlockElements = 4096;  // that stay in the cache

}  // namespace

Combiner::Combiner(std::span<const Addition> additions, std::size_t sources) {
  const int given = static_cast<int>(sources);
  std::vector<Operand> result(additions.size());
  std::vector<int> free;
  int blocks = 0;
  const auto operand = [&](int slot) {
    return slot < given ? Operand{Operand::Kind::partial, slot} : result[static_cast<std::size_t>(slot - given)];
  };
  const auto release = [&](Operand o) {
    if (o.kind == Operand::Kind::scratch) free.push_back(o.index);
  };
  for (std::size_t i = 0; i < additions.size(); ++i) {
    const Operand left = operand(additions[i].left), right = operand(additions[i].right);
    Operand out{Operand::Kind::output, 0};
    if (i + 1 < additions.size()) {
      if (left.kind == Operand::Kind::scratch) {
        out = left;
      } else {
        if (free.empty()) free.push_back(blocks++);
        out = {Operand::Kind::scratch, free.back()};
        free.pop_back();
      }
    } else {
      release(left);
    }
    release(right);
    steps_.push_back({out, left, right});
    result[i] = out;
  }
  scratch_ = AlignedBytes(static_cast<std::size_t>(blocks * kBlockElements) * sizeof(float));
}

void Combiner::run(float* out, std::span<const float* const> sources, std::int64_t n) {
  if (steps_.empty()) {
    std::copy_n(sources[0], n, out);
    return;
  }
  auto* scratch = reinterpret_cast<float*>(scratch_.data());
  for (std::int64_t at = 0; at < n; at += kBlockElements) {
    const std::int64_t size = std::min(kBlockElements, n - at);
    const auto read = [&](Operand o) -> const float* {
      return o.kind == Operand::Kind::partial ? sources[static_cast<std::size_t>(o.index)] + at
                                              : scratch + o.index * kBlockElements;
    };
    for (const Step& step : steps_) {
      float* to = step.out.kind == Operand::Kind::output ? out + at : scratch + step.out.index * kBlockElements;
      const float *left = read(step.left), *right = read(step.right);
      device::add(left, right, to, size);
    }
  }
}

}  // namespace lockstep::comm
