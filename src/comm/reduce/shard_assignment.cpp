#include "comm/reduce/shard_assignment.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

#include "comm/reduce/tree.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

// A full subtree to be placed on a rank (or a host). If blocks are placed in order of decreasing size, each finds room
// at a multiple of its size, for any number of shards: what is taken already consists of whole blocks of at least its
// size. The same holds for the blocks of ranks within those of their host: the host's blocks have distinct sizes, so
// those smaller than a rank's block have less room together than is still free, and a larger one has room.
struct Block {
  int size = 0;
  int rank = 0;
  int kept = 0;  ///< how many of its shards can stay where they were
};

std::vector<Block> blocks_of(std::span<const int> counts) {
  std::vector<Block> blocks;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    for (unsigned rest = static_cast<unsigned>(counts[rank]); rest != 0; rest &= rest - 1) {
      blocks.push_back({1 << std::countr_zero(rest), static_cast<int>(rank), 0});
    }
  }
  std::stable_sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) { return a.size > b.size; });
  return blocks;
}

// The tree's right edge may contain one subtree that is not full (V = 7: {4, 5, 6}); only one rank can own it as a
// whole. `rank` -1: none does.
struct Edge {
  int rank = -1;
  int size = 0;
};

int subtrees(int count) {
  return std::popcount(static_cast<unsigned>(count));
}

// The cost of an edge owner: (most subtrees of any rank, subtrees of all ranks), in O(1).
class EdgeCost {
 public:
  explicit EdgeCost(std::span<const int> counts) : counts_(counts) {
    for (const int count : counts) {
      const int needed = subtrees(count);
      total_ += needed;
      second_ = std::max(second_, std::min(max_, needed));
      max_ = std::max(max_, needed);
    }
  }
  [[nodiscard]] std::pair<int, int> operator()(Edge edge) const {
    if (edge.rank < 0) return {max_, total_};
    const int count = counts_[static_cast<std::size_t>(edge.rank)];
    const int whole = subtrees(count), needed = 1 + subtrees(count - edge.size);
    return {std::max(needed, whole == max_ ? second_ : max_), total_ - whole + needed};
  }

 private:
  std::span<const int> counts_;
  int total_ = 0, max_ = 0, second_ = 0;  // of all ranks; the largest and the second largest
};

Edge best_edge(std::span<const int> counts, int shards) {
  const EdgeCost cost(counts);
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

// The rank of each shard; -1: none yet.
std::vector<int> owners(const ShardAssignment& assignment, int shards) {
  std::vector<int> owner(static_cast<std::size_t>(shards), -1);
  for (std::size_t rank = 0; rank < assignment.shards_of_rank.size(); ++rank) {
    for (const int shard : assignment.shards_of_rank[rank]) {
      owner.at(static_cast<std::size_t>(shard)) = static_cast<int>(rank);
    }
  }
  return owner;
}

// Where blocks may be placed: on shards that are still free and belong to the block's host.
class Room {
 public:
  Room() = default;  // a single host
  Room(std::vector<int> host_of_shard, std::span<const int> host_of_rank)
      : host_of_shard_(std::move(host_of_shard)),
        run_end_(host_of_shard_.size()),
        host_of_rank_(host_of_rank),
        hosts_(*std::max_element(host_of_rank.begin(), host_of_rank.end()) + 1) {
    for (std::size_t v = run_end_.size(); v-- > 0;) {
      const bool goes_on = v + 1 < run_end_.size() && host_of_shard_[v + 1] == host_of_shard_[v];
      run_end_[v] = goes_on ? run_end_[v + 1] : static_cast<int>(v) + 1;
    }
  }
  [[nodiscard]] int hosts() const { return hosts_; }
  [[nodiscard]] int host_of_rank(int rank) const {
    return host_of_rank_.empty() ? 0 : host_of_rank_[static_cast<std::size_t>(rank)];
  }
  /// The host that has all shards of this range; -1: none.
  [[nodiscard]] int host_of(int first, int size) const {
    if (host_of_shard_.empty()) return 0;
    const auto at = static_cast<std::size_t>(first);
    return run_end_[at] - first >= size ? host_of_shard_[at] : -1;
  }

 private:
  std::vector<int> host_of_shard_, run_end_;  ///< run_end: where the run of shards of the same host ends
  std::span<const int> host_of_rank_;
  int hosts_ = 1;
};

// The shards that each rank had before, ascending.
class ShardsBefore {
 public:
  ShardsBefore(const std::vector<int>& owner, std::size_t ranks) : start_(ranks + 1, 0) {
    const auto counts = [&](int rank) { return rank >= 0 && static_cast<std::size_t>(rank) < ranks; };
    for (const int rank : owner) start_[counts(rank) ? static_cast<std::size_t>(rank) + 1 : 0] += counts(rank) ? 1 : 0;
    std::partial_sum(start_.begin(), start_.end(), start_.begin());
    shards_.resize(static_cast<std::size_t>(start_.back()));
    auto next = start_;
    for (std::size_t v = 0; v < owner.size(); ++v) {
      if (!counts(owner[v])) continue;
      shards_[static_cast<std::size_t>(next[static_cast<std::size_t>(owner[v])]++)] = static_cast<int>(v);
    }
  }
  [[nodiscard]] std::span<const int> of(int rank) const {
    const auto r = static_cast<std::size_t>(rank);
    return std::span(shards_).subspan(static_cast<std::size_t>(start_[r]),
                                      static_cast<std::size_t>(start_[r + 1] - start_[r]));
  }

 private:
  std::vector<int> start_, shards_;
};

// Chooses positions for blocks of one size: each block takes the free position that keeps most of its rank's shards
// where they were, or else the lowest one. Only positions with shards that the rank had can keep any. A rank has at
// most one block of each size, so all sizes together look at each shard O(log V) times.
class Places {
 public:
  Places(const ShardsBefore& before, const Room& room, int shards)
      : before_(before), room_(room), taken_(static_cast<std::size_t>(shards)) {}

  /// Sets the size of the next blocks.
  void set_size(int size) {
    size_ = size;
    const int places = static_cast<int>(taken_.size()) / size;
    lowest_.assign(static_cast<std::size_t>(room_.hosts()), -1);
    next_.assign(static_cast<std::size_t>(places), -1);
    for (int place = places - 1; place >= 0; --place) {
      const int host = room_.host_of(place * size, size);
      if (host < 0 || is_taken(place * size)) continue;
      next_[static_cast<std::size_t>(place)] = std::exchange(lowest_[static_cast<std::size_t>(host)], place);
    }
  }
  /// How many of the rank's shards can stay.
  [[nodiscard]] int kept(int rank) const { return nearest(rank).second; }
  /// Takes the rank's best position; returns its first shard.
  int take(int rank) {
    const auto [near, kept] = nearest(rank);
    const int first = kept > 0 ? near : lowest(room_.host_of_rank(rank));
    std::fill_n(taken_.begin() + first, size_, char{1});
    return first;
  }

 private:
  [[nodiscard]] bool is_taken(int first) const { return taken_[static_cast<std::size_t>(first)] != 0; }

  // The free position that keeps most shards, if one keeps any, and how many.
  [[nodiscard]] std::pair<int, int> nearest(int rank) const {
    const auto had = before_.of(rank);
    std::pair<int, int> found{-1, 0};
    for (auto from = had.begin(); from != had.end();) {
      const int first = *from / size_ * size_;
      const auto end = std::find_if(from, had.end(), [&](int shard) { return shard >= first + size_; });
      const int kept = static_cast<int>(end - from);
      from = end;
      if (kept <= found.second || first + size_ > static_cast<int>(taken_.size()) || is_taken(first)) continue;
      if (room_.host_of(first, size_) == room_.host_of_rank(rank)) found = {first, kept};
    }
    return found;
  }

  // Positions are never freed, so the search continues where it last stopped.
  int lowest(int host) {
    int& place = lowest_[static_cast<std::size_t>(host)];
    while (place >= 0 && is_taken(place * size_)) place = next_[static_cast<std::size_t>(place)];
    LOCKSTEP_CHECK(place >= 0, "there is room for every block");
    return place * size_;
  }

  const ShardsBefore& before_;
  const Room& room_;
  std::vector<char> taken_;
  int size_ = 1;
  std::vector<int> lowest_, next_;  // by host: its lowest position; by position: the next one of the same host; -1:
                                    // none
};

// The rank of each shard. `before`: its previous rank.
std::vector<int> place(std::span<const int> counts, const std::vector<int>& before, Edge edge, const Room& room) {
  const auto shards = static_cast<int>(before.size());
  std::vector<int> rest(counts.begin(), counts.end()), owner(before.size(), -1);
  const auto give = [&](int rank, int first, int size) { std::fill_n(owner.begin() + first, size, rank); };
  if (edge.rank >= 0) {
    rest[static_cast<std::size_t>(edge.rank)] -= edge.size;
    give(edge.rank, shards - edge.size, edge.size);
  }
  const ShardsBefore had(before, counts.size());
  Places places(had, room, edge.rank >= 0 ? shards - edge.size : shards);
  auto blocks = blocks_of(rest);
  for (auto from = blocks.begin(); from != blocks.end();) {
    const auto end = std::find_if(from, blocks.end(), [&](const Block& block) { return block.size != from->size; });
    places.set_size(from->size);
    // Blocks that keep most choose first; the others take what is left.
    for (auto block = from; block != end; ++block) block->kept = places.kept(block->rank);
    std::stable_sort(from, end, [](const Block& a, const Block& b) { return a.kept > b.kept; });
    for (; from != end; ++from) give(from->rank, places.take(from->rank), from->size);
  }
  return owner;
}

// As place(), but first assigns shards to hosts. The tree's right edge is then not given to one rank as a whole.
std::vector<int> place_by_host(std::span<const int> counts, const std::vector<int>& before,
                               std::span<const int> host_of) {
  const int hosts = *std::max_element(host_of.begin(), host_of.end()) + 1;
  std::vector<int> counts_of_hosts(static_cast<std::size_t>(hosts)), host_before = before;
  for (std::size_t r = 0; r < counts.size(); ++r) counts_of_hosts[static_cast<std::size_t>(host_of[r])] += counts[r];
  for (int& of_shard : host_before) of_shard = of_shard < 0 ? -1 : host_of[static_cast<std::size_t>(of_shard)];
  const Room room(place(counts_of_hosts, host_before, {}, {}), host_of);
  return place(counts, before, {}, room);
}

bool alone_on_hosts(std::span<const int> host_of) {
  return std::set<int>(host_of.begin(), host_of.end()).size() == host_of.size();
}

}  // namespace

ShardAssignment place_shards(std::span<const int> counts, const ShardAssignment& before, std::span<const int> host_of) {
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
  ShardAssignment assignment;
  for (const auto& mine : owned) {
    auto& list = assignment.shards_of_rank.emplace_back();
    for (const TreeNode node : tree.maximal_subtrees(mine)) {
      for (int v = tree.first(node); v < tree.end(node); ++v) list.push_back(v);
    }
  }
  return assignment;
}

// Each shard goes to the rank that is furthest behind its share of the shards dealt so far.
ShardAssignment interleave_shards(const ShardAssignment& placed, std::span<const int> host_of) {
  ShardAssignment dealt{std::vector<std::vector<int>>(placed.shards_of_rank.size())};
  std::map<int, std::vector<std::size_t>> ranks_of_host;
  for (std::size_t r = 0; r < placed.shards_of_rank.size(); ++r) ranks_of_host[host_of[r]].push_back(r);
  for (const auto& [host, ranks] : ranks_of_host) {
    std::vector<int> shards;
    for (const std::size_t r : ranks) {
      shards.insert(shards.end(), placed.shards_of_rank[r].begin(), placed.shards_of_rank[r].end());
    }
    std::sort(shards.begin(), shards.end());
    for (std::size_t i = 0; i < shards.size(); ++i) {
      const auto behind = [&](std::size_t r) {  // how far behind, times the number of shards
        return static_cast<std::int64_t>((i + 1) * placed.shards_of_rank[r].size()) -
               static_cast<std::int64_t>(dealt.shards_of_rank[r].size() * shards.size());
      };
      std::size_t next = ranks.front();
      for (const std::size_t r : ranks) {
        if (behind(r) > behind(next)) next = r;
      }
      dealt.shards_of_rank[next].push_back(shards[i]);
    }
  }
  return dealt;
}

int shards_moved(const ShardAssignment& before, const ShardAssignment& after) {
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
  using Next = std::pair<double, std::size_t>;  // (time at which the rank would finish one more shard, rank); ties go
                                                // to the lower rank
  std::priority_queue<Next, std::vector<Next>, std::greater<>> queue;
  for (std::size_t r = 0; r < weights.size(); ++r) {
    if (weights[r] > 0) queue.emplace(1 / weights[r], r);
  }
  LOCKSTEP_CHECK(shards <= 0 || !queue.empty(), "some weight must be above 0");
  std::vector<int> counts(weights.size(), 0);
  for (int v = 0; v < shards; ++v) {
    const std::size_t r = queue.top().second;
    queue.pop();
    ++counts[r];
    queue.emplace((counts[r] + 1) / weights[r], r);
  }
  return counts;
}

}  // namespace lockstep::comm
