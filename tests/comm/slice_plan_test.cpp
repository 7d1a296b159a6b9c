// The exchange as messages, played through between made-up ranks: each message is delivered by order alone, the owner
// adds as it does on its GPU, and the bits are those of the tree, however shards are placed.
#include "comm/slice_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>

#include "comm/exchange_cases.hpp"
#include "comm/gpu_exchange.hpp"
#include "cuda/host_gpu.hpp"

namespace lockstep::comm {

namespace {

constexpr std::uint64_t kStep = 7;
constexpr std::int64_t kElements = 1'111;

using Values = std::vector<float>;

/// The sum of a subtree's shards, in the tree's association.
Values sum_of(const Tree& tree, TreeNode node) {
  if (node.level == 0) return gradient(kStep, node.index, 0, kElements);
  Values left = sum_of(tree, tree.left(node));
  const Values right = sum_of(tree, tree.right(node));
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = left[i] + right[i];
  return left;
}

struct Rank {
  SlicePlan plan;
  std::vector<Values> roots;
  Values received, sum;
};

/// What every owner makes of its slice, put together.
Values play(const Tree& tree, const Assignment& assignment, const std::vector<std::int64_t>& bounds) {
  const auto ranks = static_cast<int>(assignment.shards_of_rank.size());
  std::vector<Rank> all;
  std::map<std::pair<int, int>, std::deque<Values>> wires;  // by (from, to)
  for (int r = 0; r < ranks; ++r) {
    Rank& rank = all.emplace_back();
    rank.plan = slice_plan(tree, assignment, r, bounds);
    for (const TreeNode node : tree.maximal_subtrees(assignment.shards_of_rank[static_cast<std::size_t>(r)])) {
      rank.roots.push_back(sum_of(tree, node));
    }
    for (const auto& send : rank.plan.sends) {
      const auto first = rank.roots.at(static_cast<std::size_t>(send.root)).begin() + send.first;
      wires[{r, send.to}].emplace_back(first, first + send.count);
    }
  }
  Values whole(static_cast<std::size_t>(kElements), std::nanf(""));
  for (int r = 0; r < ranks; ++r) {
    Rank& rank = all[static_cast<std::size_t>(r)];
    rank.received.resize(static_cast<std::size_t>(rank.plan.receive_elements));
    for (const auto& receive : rank.plan.receives) {
      auto& wire = wires[{receive.from, r}];
      EXPECT_FALSE(wire.empty()) << "rank " << r << " waits for a message that nobody sends";
      EXPECT_EQ(static_cast<std::int64_t>(wire.front().size()), rank.plan.count);
      std::copy(wire.front().begin(), wire.front().end(), rank.received.begin() + receive.at);
      wire.pop_front();
    }
    std::vector<float*> roots;
    for (Values& root : rank.roots) roots.push_back(root.data());
    backend::HostGpu gpu;
    add_slices(gpu, gpu.make_stream(), rank.plan, roots, rank.received.data(), whole.data() + rank.plan.first);
  }
  for (const auto& [ends, wire] : wires) EXPECT_TRUE(wire.empty()) << "a message that nobody receives";
  return whole;
}

std::vector<std::int64_t> even_bounds(int ranks) {
  std::vector<std::int64_t> bounds;
  for (int r = 0; r <= ranks; ++r) bounds.push_back(kElements * r / ranks);
  return bounds;
}

}  // namespace

TEST(SlicePlan, TheBitsAreTheTreesForEveryNumberOfRanksAndShards) {
  for (const int shards : {1, 2, 3, 5, 8, 12}) {
    const Tree tree(shards);
    const Values expected = tree_sum(kStep, shards, 0, kElements);
    for (int ranks = 1; ranks <= std::min(shards + 1, 6); ++ranks) {
      const Assignment assignment = place_shards(equal_counts(shards, ranks));
      EXPECT_EQ(play(tree, assignment, even_bounds(ranks)), expected) << shards << " shards on " << ranks << " ranks";
    }
  }
}

TEST(SlicePlan, UnequalSharesAndEmptySlices) {
  const Tree tree(12);
  const Values expected = tree_sum(kStep, 12, 0, kElements);
  for (const auto& counts : {std::vector<int>{7, 1, 4}, {0, 11, 1}, {5, 5, 2}}) {
    const Assignment assignment = place_shards(counts);
    EXPECT_EQ(play(tree, assignment, {0, 0, kElements, kElements}), expected);
    EXPECT_EQ(play(tree, assignment, {0, 1, 2, kElements}), expected);
  }
}

TEST(SlicePlan, SendsAsManyBytesAsTheExchangeByMpi) {
  const Tree tree(8);
  const Assignment assignment = place_shards(std::vector<int>{4, 4});
  const SlicePlan plan = slice_plan(tree, assignment, 0, even_bounds(2));
  ASSERT_EQ(plan.sends.size(), 1U);  // aligned halves: one partial sum, the other's slice of it
  EXPECT_EQ(plan.sends[0].to, 1);
  EXPECT_EQ(plan.sends[0].count, kElements - kElements / 2);
  EXPECT_EQ(plan.receive_elements, kElements / 2);
}

}  // namespace lockstep::comm
