#include "comm/reduce/micro_batch_assignment.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

#include "comm/reduce/tree.hpp"
#include "core/round_up.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

// A full subtree to be placed on a rank (or a host). If blocks are placed in order of decreasing size, each finds room
// at a multiple of its size, for any number of micro-batches: what is taken already consists of whole blocks of at
// least its size. The same holds for the blocks of ranks within those of their host: the host's blocks have distinct
// sizes, so those smaller than a rank's block have less room together than is still free, and a larger one has room.
struct Block {
  int size = 0;
  int rank = 0;
  int kept = 0;  ///< how many of its micro-batches can stay where they were
};

std::vector<Block> blocks_of(std::span<const int> counts) {
  std::vector<Block> blocks;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    for (unsigned rest = counts[rank]; rest != 0; rest &= rest - 1) {
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
  std::pair<int, int> operator()(Edge edge) const {
    if (edge.rank < 0) return {max_, total_};
    const int count = counts_[edge.rank];
    const int whole = subtrees(count), needed = 1 + subtrees(count - edge.size);
    return {std::max(needed, whole == max_ ? second_ : max_), total_ - whole + needed};
  }

 private:
  std::span<const int> counts_;
  int total_ = 0, max_ = 0, second_ = 0;  // of all ranks; the largest and the second largest
};

Edge best_edge(std::span<const int> counts, int micro_batches) {
  const EdgeCost cost(counts);
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

// The rank of each micro-batch; -1: none yet.
std::vector<int> owners(const MicroBatchAssignment& assignment, int micro_batches) {
  std::vector<int> owner(micro_batches, -1);
  for (std::size_t rank = 0; rank < assignment.micro_batches_of_rank.size(); ++rank) {
    for (const int micro_batch : assignment.micro_batches_of_rank[rank]) {
      owner.at(micro_batch) = rank;
    }
  }
  return owner;
}

// Where blocks may be placed: on micro-batches that are still free and belong to the block's host.
class Room {
 public:
  Room() = default;  // a single host
  Room(std::vector<int> host_of_micro_batch, std::span<const int> host_of_rank)
      : host_of_micro_batch_(std::move(host_of_micro_batch)),
        run_end_(host_of_micro_batch_.size()),
        host_of_rank_(host_of_rank),
        hosts_(*std::max_element(host_of_rank.begin(), host_of_rank.end()) + 1) {
    for (std::size_t v = run_end_.size(); v-- > 0;) {
      const bool goes_on = v + 1 < run_end_.size() && host_of_micro_batch_[v + 1] == host_of_micro_batch_[v];
      run_end_[v] = goes_on ? run_end_[v + 1] : static_cast<int>(v) + 1;
    }
  }
  int hosts() const { return hosts_; }
  int host_of_rank(int rank) const { return host_of_rank_.empty() ? 0 : host_of_rank_[rank]; }
  /// The host that has all micro-batches of this range; -1: none.
  int host_of(int first, int size) const {
    if (host_of_micro_batch_.empty()) return 0;
    const std::size_t at = first;
    return run_end_[at] - first >= size ? host_of_micro_batch_[at] : -1;
  }

 private:
  std::vector<int> host_of_micro_batch_, run_end_;  ///< run_end: where the run of micro-batches of the same host ends
  std::span<const int> host_of_rank_;
  int hosts_ = 1;
};

// The micro-batches that each rank had before, ascending.
class MicroBatchesBefore {
 public:
  MicroBatchesBefore(const std::vector<int>& owner, std::size_t ranks) : start_(ranks + 1, 0) {
    const auto counts = [&](int rank) { return rank >= 0 && static_cast<std::size_t>(rank) < ranks; };
    for (const int rank : owner) start_[counts(rank) ? static_cast<std::size_t>(rank) + 1 : 0] += counts(rank) ? 1 : 0;
    std::partial_sum(start_.begin(), start_.end(), start_.begin());
    micro_batches_.resize(start_.back());
    auto next = start_;
    for (std::size_t v = 0; v < owner.size(); ++v) {
      if (!counts(owner[v])) continue;
      micro_batches_[next[owner[v]]++] = v;
    }
  }
  std::span<const int> of(int rank) const {
    const std::size_t r = rank;
    return std::span(micro_batches_).subspan(start_[r], start_[r + 1] - start_[r]);
  }

 private:
  std::vector<int> start_, micro_batches_;
};

// Chooses positions for blocks of one size: each block takes the free position that keeps most of its rank's
// micro-batches where they were, or else the lowest one. Only positions with micro-batches that the rank had can keep
// any. A rank has at most one block of each size, so all sizes together look at each micro-batch O(log V) times.
class Places {
 public:
  Places(const MicroBatchesBefore& before, const Room& room, int micro_batches)
      : before_(before), room_(room), taken_(micro_batches) {}

  /// Sets the size of the next blocks.
  void set_size(int size) {
    size_ = size;
    const int places = static_cast<int>(taken_.size()) / size;
    lowest_.assign(room_.hosts(), -1);
    next_.assign(places, -1);
    for (int place = places - 1; place >= 0; --place) {
      const int host = room_.host_of(place * size, size);
      if (host < 0 || is_taken(place * size)) continue;
      next_[place] = std::exchange(lowest_[host], place);
    }
  }
  /// How many of the rank's micro-batches can stay.
  int kept(int rank) const { return nearest(rank).second; }
  /// Takes the rank's best position; returns its first micro-batch.
  int take(int rank) {
    const auto [near, kept] = nearest(rank);
    const int first = kept > 0 ? near : lowest(room_.host_of_rank(rank));
    std::fill_n(taken_.begin() + first, size_, char{1});
    return first;
  }

 private:
  bool is_taken(int first) const { return taken_[first] != 0; }

  // The free position that keeps most micro-batches, if one keeps any, and how many.
  std::pair<int, int> nearest(int rank) const {
    const auto had = before_.of(rank);
    std::pair<int, int> found{-1, 0};
    for (auto from = had.begin(); from != had.end();) {
      const int first = *from / size_ * size_;
      const auto end = std::find_if(from, had.end(), [&](int micro_batch) { return micro_batch >= first + size_; });
      const int kept = end - from;
      from = end;
      if (kept <= found.second || first + size_ > static_cast<int>(taken_.size()) || is_taken(first)) continue;
      if (room_.host_of(first, size_) == room_.host_of_rank(rank)) found = {first, kept};
    }
    return found;
  }

  // Positions are never freed, so the search continues where it last stopped.
  int lowest(int host) {
    int& place = lowest_[host];
    while (place >= 0 && is_taken(place * size_)) place = next_[place];
    LOCKSTEP_CHECK(place >= 0, "there is room for every block");
    return place * size_;
  }

  const MicroBatchesBefore& before_;
  const Room& room_;
  std::vector<char> taken_;
  int size_ = 1;
  std::vector<int> lowest_, next_;  // by host: its lowest position; by position: the next one of the same host; -1:
                                    // none
};

// The rank of each micro-batch. `before`: its previous rank.
std::vector<int> place(std::span<const int> counts, const std::vector<int>& before, Edge edge, const Room& room) {
  const int micro_batches = before.size();
  std::vector<int> rest(counts.begin(), counts.end()), owner(before.size(), -1);
  const auto give = [&](int rank, int first, int size) { std::fill_n(owner.begin() + first, size, rank); };
  if (edge.rank >= 0) {
    rest[edge.rank] -= edge.size;
    give(edge.rank, micro_batches - edge.size, edge.size);
  }
  const MicroBatchesBefore had(before, counts.size());
  Places places(had, room, edge.rank >= 0 ? micro_batches - edge.size : micro_batches);
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

// As place(), but first assigns micro-batches to hosts. The tree's right edge is then not given to one rank as a whole.
std::vector<int> place_by_host(std::span<const int> counts, const std::vector<int>& before,
                               std::span<const int> host_of) {
  const int hosts = *std::max_element(host_of.begin(), host_of.end()) + 1;
  std::vector<int> counts_of_hosts(hosts), host_before = before;
  for (std::size_t r = 0; r < counts.size(); ++r) counts_of_hosts[host_of[r]] += counts[r];
  for (int& of_micro_batch : host_before) of_micro_batch = of_micro_batch < 0 ? -1 : host_of[of_micro_batch];
  const Room room(place(counts_of_hosts, host_before, {}, {}), host_of);
  return place(counts, before, {}, room);
}

bool alone_on_hosts(std::span<const int> host_of) {
  return std::set<int>(host_of.begin(), host_of.end()).size() == host_of.size();
}

}  // namespace

MicroBatchAssignment place_micro_batches(std::span<const int> counts, const MicroBatchAssignment& before,
                                         std::span<const int> host_of) {
  const int micro_batches = std::accumulate(counts.begin(), counts.end(), 0);
  LOCKSTEP_CHECK(micro_batches >= 1 && std::all_of(counts.begin(), counts.end(), [](int n) { return n >= 0; }),
                 "counts of micro-batches must not be negative, nor all zero");
  const auto had = owners(before, micro_batches);
  const bool one_level = alone_on_hosts(host_of) || std::equal(host_of.begin() + 1, host_of.end(), host_of.begin());
  const auto owner =
      one_level ? place(counts, had, best_edge(counts, micro_batches), {}) : place_by_host(counts, had, host_of);

  const Tree tree(micro_batches);
  std::vector<std::vector<int>> owned(counts.size());
  for (int v = 0; v < micro_batches; ++v) {
    owned[owner[v]].push_back(v);
  }
  MicroBatchAssignment assignment;
  for (const auto& mine : owned) {
    auto& list = assignment.micro_batches_of_rank.emplace_back();
    for (const TreeNode node : tree.maximal_subtrees(mine)) {
      for (int v = tree.first(node); v < tree.end(node); ++v) list.push_back(v);
    }
  }
  return assignment;
}

// Each micro-batch goes to the rank that is furthest behind its share of the micro-batches dealt so far.
MicroBatchAssignment interleave_micro_batches(const MicroBatchAssignment& placed, std::span<const int> host_of) {
  MicroBatchAssignment dealt{std::vector<std::vector<int>>(placed.micro_batches_of_rank.size())};
  std::map<int, std::vector<std::size_t>> ranks_of_host;
  for (std::size_t r = 0; r < placed.micro_batches_of_rank.size(); ++r) ranks_of_host[host_of[r]].push_back(r);
  for (const auto& [host, ranks] : ranks_of_host) {
    std::vector<int> micro_batches;
    for (const std::size_t r : ranks) {
      micro_batches.insert(micro_batches.end(), placed.micro_batches_of_rank[r].begin(),
                           placed.micro_batches_of_rank[r].end());
    }
    std::sort(micro_batches.begin(), micro_batches.end());
    for (std::size_t i = 0; i < micro_batches.size(); ++i) {
      const auto behind = [&](std::size_t r) {  // how far behind, times the number of micro-batches
        return static_cast<std::int64_t>((i + 1) * placed.micro_batches_of_rank[r].size()) -
               static_cast<std::int64_t>(dealt.micro_batches_of_rank[r].size() * micro_batches.size());
      };
      std::size_t next = ranks.front();
      for (const std::size_t r : ranks) {
        if (behind(r) > behind(next)) next = r;
      }
      dealt.micro_batches_of_rank[next].push_back(micro_batches[i]);
    }
  }
  return dealt;
}

std::vector<int> expected_order(const MicroBatchAssignment& assignment, std::span<const int> ranks) {
  std::vector<double> turn(assignment.order.size());
  for (std::size_t i = 0; i < turn.size(); ++i) {
    turn[assignment.order[i]] = i;
  }
  std::vector<std::pair<double, int>> timed;
  for (const int rank : ranks) {
    const auto& list = assignment.micro_batches_of_rank[rank];
    for (std::size_t i = 0; i < list.size(); ++i) {
      const double even_pace = static_cast<double>(i + 1) / list.size();
      timed.emplace_back(turn.empty() ? even_pace : turn[list[i]], list[i]);
    }
  }
  std::sort(timed.begin(), timed.end());
  std::vector<int> order;
  for (const auto& [when, micro_batch] : timed) order.push_back(micro_batch);
  return order;
}

int count_waves(std::span<const int> micro_batches_of_ranks, std::span<const int> workers_of_ranks) {
  int most = 0;
  for (std::size_t r = 0; r < micro_batches_of_ranks.size(); ++r) {
    most = std::max(most, divide_up(micro_batches_of_ranks[r], workers_of_ranks[r]));
  }
  return most;
}

int wave_at(int index, int micro_batches, int workers, int waves) {
  return (index / workers + 1) * waves / divide_up(micro_batches, workers) - 1;
}

std::vector<int> even_waves(const MicroBatchAssignment& assignment, std::span<const int> workers_of_ranks) {
  std::vector<int> counts;
  for (const auto& list : assignment.micro_batches_of_rank) counts.push_back(list.size());
  const int all = count_waves(counts, workers_of_ranks);
  std::vector<int> waves(std::accumulate(counts.begin(), counts.end(), 0));
  for (std::size_t r = 0; r < counts.size(); ++r) {
    for (int i = 0; i < counts[r]; ++i) {
      const int micro_batch = assignment.micro_batches_of_rank[r][i];
      waves[micro_batch] = wave_at(i, counts[r], workers_of_ranks[r], all);
    }
  }
  return waves;
}

int micro_batches_moved(const MicroBatchAssignment& before, const MicroBatchAssignment& after) {
  int micro_batches = 0, moved = 0;
  for (const auto& list : after.micro_batches_of_rank) micro_batches += static_cast<int>(list.size());
  const auto from = owners(before, micro_batches), to = owners(after, micro_batches);
  for (std::size_t v = 0; v < to.size(); ++v) moved += from[v] != to[v] ? 1 : 0;
  return moved;
}

std::vector<int> equal_counts(int micro_batches, int ranks) {
  LOCKSTEP_CHECK(ranks >= 1, "at least one rank");
  std::vector<int> counts(ranks, micro_batches / ranks);
  for (int r = 0; r < micro_batches % ranks; ++r) ++counts[r];
  return counts;
}

std::vector<int> counts_by_weights(int micro_batches, std::span<const double> weights) {
  using Next = std::pair<double, std::size_t>;  // (time at which the rank would finish one more micro-batch, rank);
                                                // ties go to the lower rank
  std::priority_queue<Next, std::vector<Next>, std::greater<>> queue;
  for (std::size_t r = 0; r < weights.size(); ++r) {
    if (weights[r] > 0) queue.emplace(1 / weights[r], r);
  }
  LOCKSTEP_CHECK(micro_batches <= 0 || !queue.empty(), "some weight must be above 0");
  std::vector<int> counts(weights.size(), 0);
  for (int v = 0; v < micro_batches; ++v) {
    const std::size_t r = queue.top().second;
    queue.pop();
    ++counts[r];
    queue.emplace((counts[r] + 1) / weights[r], r);
  }
  return counts;
}

}  // namespace lockstep::comm
