#include "comm/assignment.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>
#include <tuple>

#include "comm/tree.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

// A full subtree that a rank (or a host) is to have. Given largest first, each finds room that starts on a multiple of
// its size, for any number of shards: what lies in the way are whole blocks of at least its size. So do blocks of ranks
// in those of their host: these are of different sizes, so that the smaller ones together have less room than is left.
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

// The tree's right edge may hold one subtree that is not full (V = 7: {4, 5, 6}); only one rank can own it
// whole. `rank` -1: nobody does.
struct Edge {
  int rank = -1;
  int size = 0;
};

int subtrees(int count) {
  return std::popcount(static_cast<unsigned>(count));
}

Edge best_edge(std::span<const int> counts, int shards) {
  const auto cost = [&](Edge edge) {
    int most = 0, total = 0;
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      const bool owns = static_cast<int>(rank) == edge.rank;
      const int needed = owns ? 1 + subtrees(counts[rank] - edge.size) : subtrees(counts[rank]);
      most = std::max(most, needed);
      total += needed;
    }
    return std::tuple(most, total);
  };
  const Tree tree(shards);
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

// Who has each shard; -1: nobody yet.
std::vector<int> owners(const Assignment& assignment, int shards) {
  std::vector<int> owner(static_cast<std::size_t>(shards), -1);
  for (std::size_t rank = 0; rank < assignment.shards_of_rank.size(); ++rank) {
    for (const int shard : assignment.shards_of_rank[rank]) {
      owner.at(static_cast<std::size_t>(shard)) = static_cast<int>(rank);
    }
  }
  return owner;
}

// Where blocks may lie: in shards that are nobody's yet, of the block's host.
struct Room {
  std::vector<int> host_of_shard;  ///< empty: of one host
  std::vector<int> host_of_rank;
  [[nodiscard]] bool holds(int first, int size, int rank) const {
    if (host_of_shard.empty()) return true;
    const auto from = host_of_shard.begin() + first;
    const int host = host_of_rank[static_cast<std::size_t>(rank)];
    return std::all_of(from, from + size, [&](int of_shard) { return of_shard == host; });
  }
};

// Gives blocks of one size their places: each time the pair of a block and a free place that keeps most shards where
// they were, then the lowest place.
class Places {
 public:
  Places(const std::vector<int>& before, int shards, const Room& room)
      : before_(before), room_(room), taken_(static_cast<std::size_t>(shards)) {}
  void take(int first, int size) { std::fill_n(taken_.begin() + first, size, char{1}); }
  /// The block's best place and the shards that stay.
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

// Who gets each shard. `before`: who had it.
std::vector<int> place(std::span<const int> counts, const std::vector<int>& before, Edge edge, const Room& room) {
  const auto shards = static_cast<int>(before.size());
  std::vector<int> rest(counts.begin(), counts.end()), owner(before.size(), -1);
  const auto give = [&](int rank, int first, int size) { std::fill_n(owner.begin() + first, size, rank); };
  if (edge.rank >= 0) {
    rest[static_cast<std::size_t>(edge.rank)] -= edge.size;
    give(edge.rank, shards - edge.size, edge.size);
  }
  Places places(before, edge.rank >= 0 ? shards - edge.size : shards, room);
  auto blocks = blocks_of(rest);
  for (auto from = blocks.begin(); from != blocks.end();) {
    const auto end = std::find_if(from, blocks.end(), [&](const Block& block) { return block.size != from->size; });
    // Those that keep most choose first; the others then take what is left.
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

// As place(), the hosts' shards first. The tree's right edge then is nobody's as a whole.
std::vector<int> place_by_host(std::span<const int> counts, const std::vector<int>& before,
                               std::span<const int> host_of) {
  const int hosts = *std::max_element(host_of.begin(), host_of.end()) + 1;
  std::vector<int> counts_of_hosts(static_cast<std::size_t>(hosts)), host_before = before;
  for (std::size_t r = 0; r < counts.size(); ++r) counts_of_hosts[static_cast<std::size_t>(host_of[r])] += counts[r];
  for (int& of_shard : host_before) of_shard = of_shard < 0 ? -1 : host_of[static_cast<std::size_t>(of_shard)];
  Room room;
  room.host_of_shard = place(counts_of_hosts, host_before, {}, room);
  room.host_of_rank.assign(host_of.begin(), host_of.end());
  return place(counts, before, {}, room);
}

bool alone_on_hosts(std::span<const int> host_of) {
  return std::set<int>(host_of.begin(), host_of.end()).size() == host_of.size();
}

}  // namespace

Assignment place_shards(std::span<const int> counts, const Assignment& before, std::span<const int> host_of) {
  const int shards = std::accumulate(counts.begin(), counts.end(), 0);
  LOCKSTEP_CHECK(shards >= 1 && std::all_of(counts.begin(), counts.end(), [](int n) { return n >= 0; }),
                 "counts of shards must not be negative, nor all zero");
  const auto had = owners(before, shards);
  const bool one_level = alone_on_hosts(host_of) || std::equal(host_of.begin() + 1, host_of.end(), host_of.begin());
  const auto owner =
      one_level ? place(counts, had, best_edge(counts, shards), {}) : place_by_host(counts, had, host_of);

  const Tree tree(shards);
  std::vector<std::vector<int>> owned(counts.size());
  for (int v = 0; v < shards; ++v) {
    owned[static_cast<std::size_t>(owner[static_cast<std::size_t>(v)])].push_back(v);
  }
  Assignment assignment;
  for (const auto& mine : owned) {
    auto& list = assignment.shards_of_rank.emplace_back();
    for (const TreeNode node : tree.maximal_subtrees(mine)) {
      for (int v = tree.first(node); v < tree.end(node); ++v) list.push_back(v);
    }
  }
  return assignment;
}

int shards_moved(const Assignment& before, const Assignment& after) {
  int shards = 0, moved = 0;
  for (const auto& list : after.shards_of_rank) shards += static_cast<int>(list.size());
  const auto from = owners(before, shards), to = owners(after, shards);
  for (std::size_t v = 0; v < to.size(); ++v) moved += from[v] != to[v] ? 1 : 0;
  return moved;
}

std::vector<int> equal_counts(int shards, int ranks) {
  LOCKSTEP_CHECK(ranks >= 1, "at least one rank");
  std::vector<int> counts(static_cast<std::size_t>(ranks), shards / ranks);
  for (int r = 0; r < shards % ranks; ++r) ++counts[static_cast<std::size_t>(r)];
  return counts;
}

std::vector<int> counts_by_weights(int shards, std::span<const double> weights) {
  std::vector<int> counts(weights.size(), 0);
  for (int v = 0; v < shards; ++v) {
    int best = -1;
    double best_time = 0;
    for (std::size_t r = 0; r < weights.size(); ++r) {
      if (!(weights[r] > 0)) continue;
      const double time = (counts[r] + 1) / weights[r];
      if (best < 0 || time < best_time) best = static_cast<int>(r), best_time = time;
    }
    LOCKSTEP_CHECK(best >= 0, "some weight must be above 0");
    ++counts[static_cast<std::size_t>(best)];
  }
  return counts;
}

}  // namespace lockstep::comm
