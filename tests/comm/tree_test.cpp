#include "comm/reduce/tree.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <random>
#include <set>
#include <string>

#include "comm/reduce/micro_batch_assignment.hpp"
#include "comm/reduce/tree_sums.hpp"

namespace lockstep::comm {
namespace {

// The tree implemented a second time: sums of neighbours, level by level; an odd one out moves up.
std::string association(std::vector<std::string> values) {
  while (values.size() > 1) {
    std::vector<std::string> next;
    for (std::size_t i = 0; i < values.size(); i += 2) {
      next.push_back(i + 1 < values.size() ? fmt::format("({}+{})", values[i], values[i + 1]) : values[i]);
    }
    values = next;
  }
  return values[0];
}

std::string write(const Tree& tree, TreeNode node) {
  if (node.level == 0) return std::to_string(node.index);
  return fmt::format("({}+{})", write(tree, tree.left(node)), write(tree, tree.right(node)));
}

std::vector<std::string> leaf_names(int leaves) {
  std::vector<std::string> names;
  for (int v = 0; v < leaves; ++v) names.push_back(std::to_string(v));
  return names;
}

TEST(Tree, AddsNeighboursLevelByLevel) {
  EXPECT_EQ(write(Tree(5), Tree(5).root()), "(((0+1)+(2+3))+4)");
  for (int leaves = 1; leaves <= 70; ++leaves) {
    const Tree tree(leaves);
    EXPECT_EQ(write(tree, tree.root()), association(leaf_names(leaves)));
  }
}

TEST(Tree, MaximalSubtreesCoverExactlyTheSetAndCannotBeJoined) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const Tree tree(1 + static_cast<int>(random() % 40));
    std::vector<int> micro_batches;
    std::vector<bool> mine(static_cast<std::size_t>(tree.leaves()));
    for (int v = 0; v < tree.leaves(); ++v) {
      if (random() % 3 != 0) micro_batches.push_back(v), mine[static_cast<std::size_t>(v)] = true;
    }
    const auto nodes = tree.maximal_subtrees(micro_batches);
    std::vector<int> covered(mine.size(), 0);
    for (const TreeNode node : nodes) {
      for (int v = tree.first(node); v < tree.end(node); ++v) ++covered[static_cast<std::size_t>(v)];
    }
    for (std::size_t v = 0; v < mine.size(); ++v) EXPECT_EQ(covered[v], mine[v] ? 1 : 0);
    for (const TreeNode a : nodes) {
      for (const TreeNode b : nodes) {
        EXPECT_FALSE(a.level == b.level && (a.index ^ 1) == b.index) << "siblings must be joined";
      }
    }
    EXPECT_TRUE(std::is_sorted(nodes.begin(), nodes.end(),
                               [&](TreeNode a, TreeNode b) { return tree.size(a) > tree.size(b); }));
  }
}

TEST(Tree, CombineOrderKeepsTheAssociationForAnyPlacement) {
  std::mt19937 random(2);
  for (int round = 0; round < 1000; ++round) {
    const int leaves = 1 + static_cast<int>(random() % 40), ranks = 1 + static_cast<int>(random() % 8);
    const Tree tree(leaves);
    std::vector<std::vector<int>> micro_batches(static_cast<std::size_t>(ranks));
    for (int v = 0; v < leaves; ++v) micro_batches[random() % micro_batches.size()].push_back(v);
    std::vector<TreeNode> partials;
    for (const auto& list : micro_batches) {
      for (const TreeNode node : tree.maximal_subtrees(list)) partials.push_back(node);
    }
    std::vector<std::string> slots;
    for (const TreeNode node : partials) slots.push_back(write(tree, node));
    for (const Addition& a : combine_order(tree, tree.root(), partials)) {
      ASSERT_EQ(a.out, static_cast<int>(slots.size()));
      slots.push_back(
          fmt::format("({}+{})", slots[static_cast<std::size_t>(a.left)], slots[static_cast<std::size_t>(a.right)]));
    }
    EXPECT_EQ(slots.back(), association(leaf_names(leaves)));
  }
}

std::vector<int> subtree_counts(const MicroBatchAssignment& assignment, int micro_batches) {
  std::vector<int> counts;
  for (const auto& list : assignment.micro_batches_of_rank) {
    counts.push_back(static_cast<int>(Tree(micro_batches).maximal_subtrees(list).size()));
  }
  return counts;
}

TEST(MicroBatchAssignment, PowerOfTwoNeedsPopcountSubtrees) {
  std::mt19937 random(3);
  for (int round = 0; round < 1000; ++round) {
    const int micro_batches = 1 << (random() % 7);
    std::vector<int> counts(1 + random() % 9, 0);
    for (int v = 0; v < micro_batches; ++v) ++counts[random() % counts.size()];
    const MicroBatchAssignment assignment = place_micro_batches(counts);
    const auto k = subtree_counts(assignment, micro_batches);
    std::vector<int> seen(static_cast<std::size_t>(micro_batches), 0);
    for (std::size_t r = 0; r < counts.size(); ++r) {
      EXPECT_EQ(assignment.micro_batches_of_rank[r].size(), static_cast<std::size_t>(counts[r]));
      EXPECT_EQ(k[r], std::popcount(static_cast<unsigned>(counts[r])));
      for (const int v : assignment.micro_batches_of_rank[r]) ++seen[static_cast<std::size_t>(v)];
    }
    EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
  }
}

// Tries every placement of the counts: (largest, total) number of subtrees, the smallest possible pair.
struct BruteForce {
  std::vector<int> rest;
  int micro_batches;
  std::vector<std::vector<int>> lists;
  std::pair<int, int> best{1000, 1000};

  void place(int v) {
    if (v == micro_batches) {
      const auto k = subtree_counts({lists}, micro_batches);
      best = std::min(best, {*std::max_element(k.begin(), k.end()), std::accumulate(k.begin(), k.end(), 0)});
      return;
    }
    for (std::size_t r = 0; r < rest.size(); ++r) {
      if (rest[r] == 0) continue;
      --rest[r], lists[r].push_back(v);
      place(v + 1);
      ++rest[r], lists[r].pop_back();
    }
  }
};

TEST(MicroBatchAssignment, NoPlacementHasFewerSubtrees) {
  std::mt19937 random(4);
  for (int round = 0; round < 60; ++round) {
    const int micro_batches = 1 + static_cast<int>(random() % 9);
    std::vector<int> counts(1 + random() % 3, 0);
    for (int v = 0; v < micro_batches; ++v) ++counts[random() % counts.size()];
    BruteForce brute{counts, micro_batches, std::vector<std::vector<int>>(counts.size())};
    brute.place(0);
    const auto k = subtree_counts(place_micro_batches(counts), micro_batches);
    EXPECT_EQ(brute.best, (std::pair{*std::max_element(k.begin(), k.end()), std::accumulate(k.begin(), k.end(), 0)}));
  }
}

TEST(MicroBatchAssignment, APlacementNearTheOneBeforeSendsNoMore) {
  std::mt19937 random(6);
  for (int round = 0; round < 1000; ++round) {
    const int micro_batches = 1 + static_cast<int>(random() % 64);
    std::vector<int> counts(1 + random() % 9, 0);
    for (int v = 0; v < micro_batches; ++v) ++counts[random() % counts.size()];
    MicroBatchAssignment assignment = place_micro_batches(counts);
    EXPECT_EQ(micro_batches_moved(assignment, place_micro_batches(counts, assignment)), 0);
    for (int change = 0; change < 3; ++change) {
      auto& from = counts[random() % counts.size()];
      auto& to = counts[random() % counts.size()];
      if (from == 0) continue;
      --from, ++to;
    }
    const MicroBatchAssignment next = place_micro_batches(counts, assignment), anew = place_micro_batches(counts);
    std::vector<int> seen(static_cast<std::size_t>(micro_batches), 0);
    for (std::size_t r = 0; r < counts.size(); ++r) {
      EXPECT_EQ(next.micro_batches_of_rank[r].size(), static_cast<std::size_t>(counts[r]));
      for (const int v : next.micro_batches_of_rank[r]) ++seen[static_cast<std::size_t>(v)];
    }
    EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
    const auto near = subtree_counts(next, micro_batches), best = subtree_counts(anew, micro_batches);
    EXPECT_LE(*std::max_element(near.begin(), near.end()), *std::max_element(best.begin(), best.end()));
    EXPECT_LE(std::accumulate(near.begin(), near.end(), 0), std::accumulate(best.begin(), best.end(), 0));
  }
}

TEST(MicroBatchAssignment, FewMicroBatchesMove) {
  const MicroBatchAssignment equal = place_micro_batches(std::vector{8, 8, 8, 8});
  EXPECT_EQ(micro_batches_moved(equal, place_micro_batches(std::vector{9, 9, 9, 5}, equal)), 3);
  EXPECT_EQ(micro_batches_moved(equal, place_micro_batches(std::vector{8, 8, 4, 12}, equal)), 4);
  EXPECT_EQ(micro_batches_moved(equal, equal), 0);
}

TEST(MicroBatchAssignment, LargestSubtreeFirst) {
  EXPECT_EQ(place_micro_batches(std::vector{4, 4}), (MicroBatchAssignment{{{0, 1, 2, 3}, {4, 5, 6, 7}}}));
  EXPECT_EQ(place_micro_batches(std::vector{3, 5}), (MicroBatchAssignment{{{4, 5, 6}, {0, 1, 2, 3, 7}}}));
  EXPECT_EQ(place_micro_batches(std::vector{0, 4}), (MicroBatchAssignment{{{}, {0, 1, 2, 3}}}));
  EXPECT_EQ(place_micro_batches(std::vector{3, 4}), (MicroBatchAssignment{{{4, 5, 6}, {0, 1, 2, 3}}}))
      << "the tree's right edge, whole";
}

TEST(MicroBatchAssignment, EqualCounts) {
  EXPECT_EQ(equal_counts(8, 3), (std::vector{3, 3, 2}));
  EXPECT_EQ(equal_counts(2, 3), (std::vector{1, 1, 0}));
}

void all_counts(int micro_batches, std::size_t rank, std::vector<int>& counts, const std::function<void()>& visit) {
  if (rank + 1 == counts.size()) {
    counts[rank] = micro_batches;
    return visit();
  }
  for (int n = 0; n <= micro_batches; ++n) {
    counts[rank] = n;
    all_counts(micro_batches - n, rank + 1, counts, visit);
  }
}

TEST(MicroBatchAssignment, CountsByWeightsMinimiseTheSlowestRank) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const int micro_batches = static_cast<int>(random() % 12);
    std::vector<double> weights(1 + random() % 4);
    for (double& w : weights) w = 0.25 + static_cast<double>(random() % 1000) / 500;
    const auto slowest = [&](const std::vector<int>& counts) {
      double time = 0;
      for (std::size_t r = 0; r < counts.size(); ++r) time = std::max(time, counts[r] / weights[r]);
      return time;
    };
    double best = 1e9;
    std::vector<int> counts(weights.size());
    all_counts(micro_batches, 0, counts, [&] { best = std::min(best, slowest(counts)); });
    const auto found = counts_by_weights(micro_batches, weights);
    EXPECT_EQ(std::accumulate(found.begin(), found.end(), 0), micro_batches);
    EXPECT_EQ(slowest(found), best);
  }
  EXPECT_EQ(counts_by_weights(6, std::vector{2.0, 1.0, 0.0}), (std::vector{4, 2, 0}));
}

TEST(MicroBatchAssignment, HostsGetWholeSubtreesAndRanksPartsOfThem) {
  std::mt19937 random(6);
  for (int round = 0; round < 1000; ++round) {
    const int micro_batches = 1 + static_cast<int>(random() % 70);
    std::vector<int> counts(2 + random() % 9, 0), hosts;
    for (int v = 0; v < micro_batches; ++v) ++counts[random() % counts.size()];
    for (std::size_t r = 0; r < counts.size(); ++r) hosts.push_back(static_cast<int>(random() % 3));
    const MicroBatchAssignment assignment = place_micro_batches(counts, {}, hosts);
    const auto k = subtree_counts(assignment, micro_batches);
    MicroBatchAssignment by_host{std::vector<std::vector<int>>(3)};
    for (std::size_t r = 0; r < counts.size(); ++r) {
      const auto& list = assignment.micro_batches_of_rank[r];
      ASSERT_EQ(list.size(), static_cast<std::size_t>(counts[r]));
      ASSERT_LE(k[r], std::popcount(static_cast<unsigned>(counts[r])));
      auto& all = by_host.micro_batches_of_rank[static_cast<std::size_t>(hosts[r])];
      all.insert(all.end(), list.begin(), list.end());
    }
    const auto host_k = subtree_counts(by_host, micro_batches);
    for (std::size_t h = 0; h < 3; ++h) {
      const auto size = by_host.micro_batches_of_rank[h].size();
      if (std::set(hosts.begin(), hosts.end()).size() < hosts.size()) {
        ASSERT_LE(host_k[h], std::popcount(size)) << fmt::format("{} on hosts {}", counts, hosts);
      }
    }
    ASSERT_EQ(micro_batches_moved(assignment, place_micro_batches(counts, assignment, hosts)), 0);
  }
}

// A right leaf is added in the place of its sibling, so of eight micro-batches one after the other, two wait for
// theirs.
TEST(AccumulationBuffers, FewSumsWaitForTheirSiblings) {
  const auto waiting = [](const std::vector<int>& micro_batches, int workers) {
    const Tree tree(8);
    return AccumulationBuffers::most_waiting(tree_plan(tree, tree.maximal_subtrees(micro_batches)),
                                             waves_of(micro_batches, workers));
  };
  EXPECT_EQ(waiting({0}, 1), 0);
  EXPECT_EQ(waiting({0, 1}, 1), 0);
  EXPECT_EQ(waiting({0, 1, 2, 3}, 1), 1);
  EXPECT_EQ(waiting({0, 1, 2, 3, 4, 5, 6, 7}, 1), 2);
  EXPECT_EQ(waiting({0, 1}, 2), 1);  // both at once
}

}  // namespace
}  // namespace lockstep::comm
