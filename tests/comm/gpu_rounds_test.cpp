// A GPU's rounds, simulated between made-up ranks: messages are matched by order alone, the owner sums as it does on
// its GPU, and the bits are those of the tree, however micro-batches are placed.
#include "comm/reduce/gpu_rounds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>

#include "comm/reduce/all_reduce_gpu.hpp"
#include "comm/reduce_cases.hpp"
#include "cuda/host_gpu.hpp"

namespace lockstep::comm {

namespace {

constexpr std::uint64_t kStep = 7;
constexpr std::int64_t kElements = 1'111;

using Values = std::vector<float>;

/// The sum of a subtree's micro-batches, in the tree's association.
Values sum_of(const Tree& tree, TreeNode node) {
  if (node.level == 0) return gradient(kStep, node.index, 0, kElements);
  Values left = sum_of(tree, tree.left(node));
  const Values right = sum_of(tree, tree.right(node));
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = left[i] + right[i];
  return left;
}

struct PlannedRank {
  GpuRounds rounds;
  std::vector<Values> roots;
  std::vector<float*> root_memory;
  Values received;
  [[nodiscard]] SliceMemory memory() { return {root_memory, received.data()}; }
};

/// Delivers the messages of a round between all ranks.
void deliver(std::vector<PlannedRank>& ranks, GpuRounds::Round GpuRounds::*round) {
  std::map<std::pair<int, int>, std::deque<Values>> wires;  // by (from, to)
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (const auto& send : (ranks[r].rounds.*round).sends) {
      const float* first = ranks[r].memory().at(send.location);
      wires[{static_cast<int>(r), send.peer}].emplace_back(first, first + send.count);
    }
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (const auto& receive : (ranks[r].rounds.*round).receives) {
      auto& wire = wires[{receive.peer, static_cast<int>(r)}];
      ASSERT_FALSE(wire.empty()) << "rank " << r << " waits for a message that nobody sends";
      ASSERT_EQ(static_cast<std::int64_t>(wire.front().size()), receive.count);
      std::copy(wire.front().begin(), wire.front().end(), ranks[r].memory().at(receive.location));
      wire.pop_front();
    }
  }
  for (const auto& [ends, wire] : wires) EXPECT_TRUE(wire.empty()) << "a message that nobody receives";
}

Hosts hosts_of(const std::vector<int>& host_of) {
  const int hosts = *std::max_element(host_of.begin(), host_of.end()) + 1;
  return Hosts({host_of, std::vector<std::string>(static_cast<std::size_t>(hosts))});
}

/// The rounds of one bucket that is cut at these bounds, one slice per rank.
GpuRounds rounds_of(const Tree& tree, const MicroBatchAssignment& assignment, const Hosts& hosts, int rank,
                    const std::vector<std::int64_t>& bounds) {
  BucketPlan bucket;
  for (int owner = 0; owner < hosts.rank_count(); ++owner) {
    const std::int64_t first = bounds[static_cast<std::size_t>(owner)],
                       end = bounds[static_cast<std::size_t>(owner) + 1];
    if (first == end) continue;
    const int number = static_cast<int>(bucket.slices.size()), leader = hosts.leader(hosts.host_of(rank), owner);
    bucket.slices.push_back({owner, leader, first, end - first});
    if (owner == rank) {
      bucket.own = number;
    } else if (leader == rank) {
      bucket.led.push_back(number);
    }
  }
  return gpu_rounds({rank, plan_sums(tree, assignment, hosts, rank), {bucket}}, hosts, 0);
}

/// The slices computed by all owners, joined.
Values play(const Tree& tree, const MicroBatchAssignment& assignment, const std::vector<std::int64_t>& bounds,
            const std::vector<int>& host_of) {
  const Hosts hosts = hosts_of(host_of);
  std::vector<PlannedRank> ranks;
  for (std::size_t r = 0; r < host_of.size(); ++r) {
    PlannedRank& rank = ranks.emplace_back();
    rank.rounds = rounds_of(tree, assignment, hosts, static_cast<int>(r), bounds);
    for (const TreeNode node : tree.maximal_subtrees(assignment.micro_batches_of_rank[r])) {
      rank.roots.push_back(sum_of(tree, node));
    }
    rank.received.resize(static_cast<std::size_t>(rank.rounds.receive_elements));
  }
  for (PlannedRank& rank : ranks) {  // from here on they do not move
    for (Values& root : rank.roots) rank.root_memory.push_back(root.data());
  }
  device::HostGpu gpu;
  const auto stream = gpu.make_stream();
  deliver(ranks, &GpuRounds::inside);
  for (PlannedRank& rank : ranks) {
    for (const auto& sum : rank.rounds.gathered) add_slices(gpu, stream, sum, rank.memory());
  }
  deliver(ranks, &GpuRounds::between);
  Values whole(static_cast<std::size_t>(kElements), std::nanf(""));
  for (PlannedRank& rank : ranks)
    add_slices(gpu, stream, rank.rounds.own, rank.memory(), whole.data() + rank.rounds.first);
  return whole;
}

std::vector<std::int64_t> even_bounds(int ranks) {
  std::vector<std::int64_t> bounds;
  for (int r = 0; r <= ranks; ++r) bounds.push_back(kElements * r / ranks);
  return bounds;
}

}  // namespace

TEST(GpuRounds, TheBitsAreTheTreesForEveryNumberOfRanksAndMicroBatches) {
  for (const int micro_batches : {1, 2, 3, 5, 8, 12}) {
    const Tree tree(micro_batches);
    const Values expected = tree_sum(kStep, micro_batches, 0, kElements);
    for (int ranks = 1; ranks <= std::min(micro_batches + 1, 6); ++ranks) {
      const MicroBatchAssignment assignment = place_micro_batches(equal_counts(micro_batches, ranks));
      const std::vector<int> one_host(static_cast<std::size_t>(ranks), 0);
      EXPECT_EQ(play(tree, assignment, even_bounds(ranks), one_host), expected)
          << micro_batches << " micro-batches on " << ranks << " ranks";
    }
  }
}

TEST(GpuRounds, AndForAnyHosts) {
  const Tree tree(12);
  const Values expected = tree_sum(kStep, 12, 0, kElements);
  for (const auto& hosts : {std::vector<int>{0, 0, 1, 1}, {0, 1, 0, 1}, {0, 0, 0, 1}, {0, 1, 1, 2}, {0, 1, 2, 3}}) {
    for (const auto& counts : {std::vector<int>{3, 3, 3, 3}, {7, 1, 0, 4}, {1, 2, 8, 1}}) {
      EXPECT_EQ(play(tree, place_micro_batches(counts, {}, hosts), even_bounds(4), hosts), expected);
      EXPECT_EQ(play(tree, place_micro_batches(counts), {0, 0, 5, 5, kElements}, hosts), expected);
    }
  }
}

TEST(GpuRounds, UnequalSharesAndEmptySlices) {
  const Tree tree(12);
  const Values expected = tree_sum(kStep, 12, 0, kElements);
  for (const auto& counts : {std::vector<int>{7, 1, 4}, {0, 11, 1}, {5, 5, 2}}) {
    const MicroBatchAssignment assignment = place_micro_batches(counts);
    EXPECT_EQ(play(tree, assignment, {0, 0, kElements, kElements}, {0, 0, 0}), expected);
    EXPECT_EQ(play(tree, assignment, {0, 1, 2, kElements}, {0, 0, 0}), expected);
  }
}

TEST(GpuRounds, SendsAsManyBytesAsTheAllReduceOnHosts) {
  const Tree tree(8);
  const MicroBatchAssignment assignment = place_micro_batches(std::vector<int>{4, 4});
  const Hosts hosts = hosts_of({0, 0});
  const GpuRounds rounds = rounds_of(tree, assignment, hosts, 0, even_bounds(2));
  ASSERT_EQ(rounds.inside.sends.size(), 1U);  // aligned halves: one partial sum, the other's slice of it
  EXPECT_EQ(rounds.inside.sends[0].peer, 1);
  EXPECT_EQ(rounds.inside.sends[0].count, kElements - kElements / 2);
  EXPECT_TRUE(rounds.gathered.empty());
  EXPECT_TRUE(rounds.between.sends.empty());
  EXPECT_EQ(rounds.receive_elements, kElements / 2);
}

TEST(GpuRounds, OneSumOfTheHostLeavesIt) {
  const Tree tree(8);
  const std::vector<int> host_of{0, 0, 1, 1};
  const Hosts hosts = hosts_of(host_of);
  const MicroBatchAssignment assignment = place_micro_batches(std::vector<int>{2, 2, 2, 2}, {}, host_of);
  for (const int rank : {0, 1, 2, 3}) {
    const GpuRounds rounds = rounds_of(tree, assignment, hosts, rank, even_bounds(4));
    ASSERT_EQ(rounds.inside.sends.size(), 2U);  // to its neighbor, which leads half of the slices
    ASSERT_EQ(rounds.between.sends.size(), 1U);
    EXPECT_EQ(rounds.between.sends[0].peer, (rank + 2) % 4) << "the rank of the same place";
    ASSERT_EQ(rounds.gathered.size(), 1U);
    EXPECT_EQ(rounds.gathered[0].additions.size(), 1U);
    EXPECT_EQ(rounds.own.parts.size(), 3U);  // its own, its neighbor's, the other host's
  }
}

}  // namespace lockstep::comm
