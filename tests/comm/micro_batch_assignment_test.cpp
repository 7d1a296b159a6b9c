// Placements at the size of a large cluster, and compared with the plain search over all places and edge owners.
#include "comm/reduce/micro_batch_assignment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>
#include <set>
#include <tuple>

#include "comm/reduce/tree.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {
namespace {

// The definition of place_micro_batches by plain search: tries every place for each block, and every rank for each
// edge.
namespace search {

struct Block {
  int size = 0;
  int rank = 0;
};

std::vector<Block> blocks_of(std::span<const int> counts) {
  std::vector<Block> blocks;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    for (unsigned rest = static_cast<unsigned>(counts[rank]); rest != 0; rest &= rest - 1) {
      blocks.push_back({1 << std::countr_zero(rest), static_cast<int>(rank)});
    }
  }
  std::stable_sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) { return a.size > b.size; });
  return blocks;
}

struct Edge {
  int rank = -1;
  int size = 0;
};

int subtrees(int count) {
  return std::popcount(static_cast<unsigned>(count));
}

Edge best_edge(std::span<const int> counts, int micro_batches) {
  const auto cost = [&](Edge edge) {
    int max_of_rank = 0, total = 0;
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      const bool owns = static_cast<int>(rank) == edge.rank;
      const int needed = owns ? 1 + subtrees(counts[rank] - edge.size) : subtrees(counts[rank]);
      max_of_rank = std::max(max_of_rank, needed);
      total += needed;
    }
    return std::tuple(max_of_rank, total);
  };
  const Tree tree(micro_batches);
  Edge best;
  for (TreeNode node = tree.root();; node = tree.right(node)) {
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      const Edge edge{static_cast<int>(rank), tree.size(node)};
      if (edge.size <= counts[rank] && cost(edge) < cost(best)) best = edge;
    }
    if (node.level == 0) break;
  }
  return best;
}

std::vector<int> owners(const MicroBatchAssignment& assignment, int micro_batches) {
  std::vector<int> owner(static_cast<std::size_t>(micro_batches), -1);
  for (std::size_t rank = 0; rank < assignment.micro_batches_of_rank.size(); ++rank) {
    for (const int micro_batch : assignment.micro_batches_of_rank[rank]) {
      owner.at(static_cast<std::size_t>(micro_batch)) = static_cast<int>(rank);
    }
  }
  return owner;
}

struct Room {
  std::vector<int> host_of_micro_batch;
  std::vector<int> host_of_rank;
  [[nodiscard]] bool holds(int first, int size, int rank) const {
    if (host_of_micro_batch.empty()) return true;
    const auto from = host_of_micro_batch.begin() + first;
    const int host = host_of_rank[static_cast<std::size_t>(rank)];
    return std::all_of(from, from + size, [&](int of_micro_batch) { return of_micro_batch == host; });
  }
};

class Places {
 public:
  Places(const std::vector<int>& before, int micro_batches, const Room& room)
      : before_(before), room_(room), taken_(static_cast<std::size_t>(micro_batches)) {}
  void take(int first, int size) { std::fill_n(taken_.begin() + first, size, char{1}); }
  [[nodiscard]] std::pair<int, int> best(const Block& block) const {
    std::pair<int, int> found{-1, -1};
    for (int first = 0; first + block.size <= static_cast<int>(taken_.size()); first += block.size) {
      if (taken_[static_cast<std::size_t>(first)] != 0 || !room_.holds(first, block.size, block.rank)) continue;
      const auto from = before_.begin() + first;
      const int kept = static_cast<int>(std::count(from, from + block.size, block.rank));
      if (kept > found.second) found = {first, kept};
    }
    LOCKSTEP_CHECK(found.first >= 0, "there is room for every block");
    return found;
  }

 private:
  const std::vector<int>& before_;
  const Room& room_;
  std::vector<char> taken_;
};

std::vector<int> place(std::span<const int> counts, const std::vector<int>& before, Edge edge, const Room& room) {
  const auto micro_batches = static_cast<int>(before.size());
  std::vector<int> rest(counts.begin(), counts.end()), owner(before.size(), -1);
  const auto give = [&](int rank, int first, int size) { std::fill_n(owner.begin() + first, size, rank); };
  if (edge.rank >= 0) {
    rest[static_cast<std::size_t>(edge.rank)] -= edge.size;
    give(edge.rank, micro_batches - edge.size, edge.size);
  }
  Places places(before, edge.rank >= 0 ? micro_batches - edge.size : micro_batches, room);
  auto blocks = blocks_of(rest);
  for (auto from = blocks.begin(); from != blocks.end();) {
    const auto end = std::find_if(from, blocks.end(), [&](const Block& block) { return block.size != from->size; });
    std::stable_sort(from, end,
                     [&](const Block& a, const Block& b) { return places.best(a).second > places.best(b).second; });
    for (; from != end; ++from) {
      const int first = places.best(*from).first;
      places.take(first, from->size);
      give(from->rank, first, from->size);
    }
  }
  return owner;
}

std::vector<int> place_by_host(std::span<const int> counts, const std::vector<int>& before,
                               std::span<const int> host_of) {
  const int hosts = *std::max_element(host_of.begin(), host_of.end()) + 1;
  std::vector<int> counts_of_hosts(static_cast<std::size_t>(hosts)), host_before = before;
  for (std::size_t r = 0; r < counts.size(); ++r) counts_of_hosts[static_cast<std::size_t>(host_of[r])] += counts[r];
  for (int& of_micro_batch : host_before)
    of_micro_batch = of_micro_batch < 0 ? -1 : host_of[static_cast<std::size_t>(of_micro_batch)];
  Room room;
  room.host_of_micro_batch = place(counts_of_hosts, host_before, {}, room);
  room.host_of_rank.assign(host_of.begin(), host_of.end());
  return place(counts, before, {}, room);
}

bool alone_on_hosts(std::span<const int> host_of) {
  return std::set<int>(host_of.begin(), host_of.end()).size() == host_of.size();
}

std::vector<TreeNode> maximal_subtrees(const Tree& tree, const std::vector<int>& micro_batches) {
  const std::set<int> mine(micro_batches.begin(), micro_batches.end());
  std::vector<TreeNode> found, open = {tree.root()};
  while (!open.empty()) {
    const TreeNode node = open.back();
    open.pop_back();
    bool whole = true;
    for (int v = tree.first(node); v < tree.end(node); ++v) whole = whole && mine.contains(v);
    if (whole) {
      found.push_back(node);
    } else if (node.level > 0) {
      open.push_back(tree.right(node));
      open.push_back(tree.left(node));
    }
  }
  std::stable_sort(found.begin(), found.end(), [&](TreeNode a, TreeNode b) { return tree.size(a) > tree.size(b); });
  return found;
}

MicroBatchAssignment place_micro_batches(std::span<const int> counts, const MicroBatchAssignment& before,
                                         std::span<const int> host_of) {
  const int micro_batches = std::accumulate(counts.begin(), counts.end(), 0);
  const auto had = owners(before, micro_batches);
  const bool one_level = alone_on_hosts(host_of) || std::equal(host_of.begin() + 1, host_of.end(), host_of.begin());
  const auto owner =
      one_level ? place(counts, had, best_edge(counts, micro_batches), {}) : place_by_host(counts, had, host_of);
  std::vector<std::vector<int>> owned(counts.size());
  for (std::size_t v = 0; v < owner.size(); ++v)
    owned[static_cast<std::size_t>(owner[v])].push_back(static_cast<int>(v));
  const Tree tree(micro_batches);
  MicroBatchAssignment assignment;
  for (const auto& mine : owned) {
    auto& list = assignment.micro_batches_of_rank.emplace_back();
    for (const TreeNode node : maximal_subtrees(tree, mine)) {
      for (int v = tree.first(node); v < tree.end(node); ++v) list.push_back(v);
    }
  }
  return assignment;
}

std::vector<int> counts_by_weights(int micro_batches, std::span<const double> weights) {
  std::vector<int> counts(weights.size(), 0);
  for (int v = 0; v < micro_batches; ++v) {
    int best = -1;
    double best_time = 0;
    for (std::size_t r = 0; r < weights.size(); ++r) {
      if (!(weights[r] > 0)) continue;
      const double time = (counts[r] + 1) / weights[r];
      if (best < 0 || time < best_time) best = static_cast<int>(r), best_time = time;
    }
    ++counts[static_cast<std::size_t>(best)];
  }
  return counts;
}

}  // namespace search

std::vector<int> random_counts(std::mt19937& random, int micro_batches, std::size_t ranks) {
  std::vector<int> counts(ranks, 0);
  const std::size_t busy = 1 + random() % ranks;  // the others get none
  for (int v = 0; v < micro_batches; ++v) ++counts[random() % busy];
  std::shuffle(counts.begin(), counts.end(), random);
  return counts;
}

// The previous placement: none, by other counts, partly arbitrary, or nearly that of the counts.
MicroBatchAssignment random_before(std::mt19937& random, const std::vector<int>& counts, std::span<const int> hosts) {
  const int micro_batches = std::accumulate(counts.begin(), counts.end(), 0);
  switch (random() % 4) {
    case 0:
      return {};
    case 1:
      return search::place_micro_batches(random_counts(random, micro_batches, counts.size()), {}, hosts);
    case 2: {
      MicroBatchAssignment partial{std::vector<std::vector<int>>(counts.size())};
      for (int v = 0; v < micro_batches; ++v) {
        if (random() % 3 != 0) partial.micro_batches_of_rank[random() % counts.size()].push_back(v);
      }
      return partial;
    }
    default: {
      auto near = counts;
      for (int change = 0; change < 3; ++change) {
        auto& from = near[random() % near.size()];
        if (from > 0) --from, ++near[random() % near.size()];
      }
      return search::place_micro_batches(near, {}, random() % 2 == 0 ? hosts : std::span<const int>());
    }
  }
}

TEST(MicroBatchAssignment, IsThatOfASearchOverAllPlaces) {
  std::mt19937 random(1);
  for (int round = 0; round < 6000; ++round) {
    const int micro_batches = random() % 4 == 0 ? 1 << random() % 8 : 1 + static_cast<int>(random() % 150);
    const auto counts = random_counts(random, micro_batches, 1 + random() % 24);
    std::vector<int> hosts;
    if (const std::size_t all = random() % 6; all > 0) {
      for (std::size_t r = 0; r < counts.size(); ++r) hosts.push_back(static_cast<int>(random() % all));
      if (random() % 2 == 0) std::sort(hosts.begin(), hosts.end());
    }
    const MicroBatchAssignment before = random_before(random, counts, hosts);
    ASSERT_EQ(place_micro_batches(counts, before, hosts), search::place_micro_batches(counts, before, hosts))
        << fmt::format("round {}: {} on hosts {}, before {}", round, counts, hosts, before.micro_batches_of_rank);
  }
}

TEST(MicroBatchAssignment, RanksAloneOnTheirHostsArePlacedAsOnOne) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    const auto counts = random_counts(random, 1 + static_cast<int>(random() % 100), 1 + random() % 12);
    std::vector<int> hosts(counts.size());
    std::iota(hosts.begin(), hosts.end(), 0);
    const MicroBatchAssignment before = random_before(random, counts, hosts);
    ASSERT_EQ(place_micro_batches(counts, before, hosts), search::place_micro_batches(counts, before, {}))
        << "round " << round;
  }
}

TEST(Tree, MaximalSubtreesAreThoseOfASearchInAnyOrder) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    const Tree tree(1 + static_cast<int>(random() % 100));
    std::vector<int> micro_batches;
    for (int v = 0; v < tree.leaves(); ++v) {
      if (random() % 4 != 0) micro_batches.push_back(v);
    }
    const auto expected = search::maximal_subtrees(tree, micro_batches);
    std::shuffle(micro_batches.begin(), micro_batches.end(), random);
    ASSERT_EQ(tree.maximal_subtrees(micro_batches), expected) << "round " << round;
  }
}

TEST(MicroBatchAssignment, CountsByWeightsAreThoseOfASearch) {
  std::mt19937 random(4);
  for (int round = 0; round < 2000; ++round) {
    std::vector<double> weights(1 + random() % 12);
    for (double& w : weights) w = static_cast<double>(random() % 8) / (1 + static_cast<double>(random() % 3));
    weights[random() % weights.size()] = 1;
    const int micro_batches = static_cast<int>(random() % 200);
    ASSERT_EQ(counts_by_weights(micro_batches, weights), search::counts_by_weights(micro_batches, weights))
        << "round " << round;
  }
}

// 16,384 ranks: work proportional to micro-batches * ranks would take too long for a test.
constexpr int kRanks = 16'384, kMicroBatches = 131'072;

std::vector<double> scattered_weights() {
  std::mt19937 random(5);
  std::vector<double> weights;
  for (int r = 0; r < kRanks; ++r) weights.push_back(1 + static_cast<double>(random() % 1000) / 5000);
  weights[100] = 0.5;
  return weights;
}

void expect_each_micro_batch_once(const MicroBatchAssignment& assignment, const std::vector<int>& counts) {
  std::vector<int> seen(kMicroBatches, 0);
  for (std::size_t r = 0; r < counts.size(); ++r) {
    ASSERT_EQ(assignment.micro_batches_of_rank[r].size(), static_cast<std::size_t>(counts[r]));
    for (const int v : assignment.micro_batches_of_rank[r]) ++seen[static_cast<std::size_t>(v)];
  }
  EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
}

TEST(AssignmentAtScale, UnequalCountsOnHostsOfEight) {
  std::vector<int> hosts(kRanks);
  for (int r = 0; r < kRanks; ++r) hosts[static_cast<std::size_t>(r)] = r / 8;
  const auto equal = equal_counts(kMicroBatches, kRanks),
             uneven = counts_by_weights(kMicroBatches, scattered_weights());
  EXPECT_EQ(std::accumulate(uneven.begin(), uneven.end(), 0), kMicroBatches);
  const MicroBatchAssignment before = place_micro_batches(equal, {}, hosts),
                             after = place_micro_batches(uneven, before, hosts);
  expect_each_micro_batch_once(after, uneven);
  EXPECT_EQ(micro_batches_moved(after, place_micro_batches(uneven, after, hosts)), 0);
}

TEST(AssignmentAtScale, UnequalCountsOnOneHostHoweverMicroBatchesLay) {
  const auto uneven = counts_by_weights(kMicroBatches, scattered_weights());
  MicroBatchAssignment strewn{std::vector<std::vector<int>>(kRanks)};
  for (int v = 0; v < kMicroBatches; ++v)
    strewn.micro_batches_of_rank[static_cast<std::size_t>(v % kRanks)].push_back(v);
  expect_each_micro_batch_once(place_micro_batches(uneven, strewn), uneven);
}

TEST(AssignmentAtScale, SubtreesOfEveryRankOfAWideTree) {
  // Lists of few of the 2^29 micro-batches: anything as long as the tree would not fit into memory for each of them.
  const Tree tree(1 << 29);
  for (int r = 0; r < kRanks; ++r) {
    const int first = r * 32'768;
    const auto nodes = tree.maximal_subtrees({first + 3, first + 2, first + 8});
    ASSERT_EQ(nodes, (std::vector<TreeNode>{{1, first / 2 + 1}, {0, first + 8}}));
  }
}

}  // namespace
}  // namespace lockstep::comm
