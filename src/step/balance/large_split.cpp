#include "step/balance/large_split.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "lockstep/error.hpp"
#include "step/balance/split.hpp"

namespace lockstep::balance {

std::vector<int> greedy_counts(std::span<const RankCost> ranks, int micro_batches, double reduce) {
  using Next = std::pair<double, std::size_t>;  // (time at which the rank would finish one more micro-batch, rank)
  std::priority_queue<Next, std::vector<Next>, std::greater<>> queue;
  std::vector<int> counts(ranks.size(), 0);
  const auto offer = [&](std::size_t r) {
    if (counts[r] < ranks[r].max_micro_batches) queue.emplace(rank_seconds(ranks[r], counts[r] + 1, reduce), r);
  };
  for (std::size_t r = 0; r < ranks.size(); ++r) offer(r);
  for (int v = 0; v < micro_batches; ++v) {
    LOCKSTEP_CHECK(!queue.empty(), "the ranks' memory must hold all micro-batches");
    const std::size_t r = queue.top().second;
    queue.pop();
    ++counts[r];
    offer(r);
  }
  return counts;
}

namespace {

// The largest number up to `bound` with at most `bits` bits set.
int highest_bits(int bound, int bits) {
  unsigned rest = bound;
  unsigned kept = 0;
  for (; bits > 0 && rest != 0; --bits) {
    kept |= std::bit_floor(rest);
    rest -= std::bit_floor(rest);
  }
  return kept;
}

// The most micro-batches within the limit if they needed `sums` partial sums, whatever they really need; -1: not even
// none.
int max_with_sums(const RankCost& rank, int most, double reduce, double limit, int sums) {
  const auto fits = [&](int rounds) {
    return rank.fixed_seconds + rounds * rank.seconds_per_micro_batch + (sums + 1) * reduce <= limit;
  };
  if (!fits(0)) return -1;
  int low = 0, high = rounds(most, rank.workers) + 1;  // low fits; high does not (or exceeds the maximum)
  const double guess = (limit - rank.fixed_seconds - (sums + 1) * reduce) / rank.seconds_per_micro_batch;
  for (const double near : {guess - 1, guess + 1}) {  // rounding changes the bound by at most one
    if (!(near > low && near < high)) continue;
    const int at = near;
    (fits(at) ? low : high) = at;
  }
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return std::min<long long>(most, static_cast<long long>(low) * rank.workers);
}

// The counts with which one rank finishes within the limit. If n is one of them, so is each power of two below n: it
// takes no more rounds, and only one sum. So the next larger one is at most n + 1 away, and a walk to it costs no more
// than the number of micro-batches moved.
class Allowed {
 public:
  Allowed(const RankCost& rank, int micro_batches, double reduce, double limit)
      : rank_(rank), reduce_(reduce), limit_(limit), max_(max_within(rank, micro_batches, reduce, limit)) {}
  int max() const { return max_; }
  /// The next larger (way 1) or smaller (way -1) one; -1: none.
  int next(int count, int way) const {
    for (int n = count + way; n >= 0 && n <= max_; n += way) {
      if (rank_seconds(rank_, n, reduce_) <= limit_) return n;
    }
    return -1;
  }
  /// In a tie, the lower one.
  int nearest(int count) const {
    if (count >= max_) return max_;
    const int below = next(count + 1, -1), above = next(count, 1);
    return below >= 0 && (above < 0 || count - below <= above - count) ? below : above;
  }

 private:
  const RankCost& rank_;
  double reduce_, limit_;
  int max_;
};

// Allowed counts of the ranks, which approach the wanted sum step by step.
class Walk {
 public:
  Walk(const std::vector<Allowed>& allowed, std::span<const int> near, int micro_batches)
      : allowed_(allowed), near_(near) {
    for (std::size_t r = 0; r < allowed.size(); ++r) counts_.push_back(allowed[r].nearest(near[r]));
    missing_ = micro_batches - std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0});
  }
  bool is_done() const { return missing_ == 0; }
  const std::vector<int>& counts() const { return counts_; }

  /// Approaches the sum without passing it.
  void approach() {
    using Choice =
        std::tuple<double, int, std::size_t>;  // (added distance per micro-batch, minus the step's micro-batches, rank)
    std::priority_queue<Choice, std::vector<Choice>, std::greater<>> choices;
    const auto offer = [&](std::size_t r) {
      // A step that is too large now stays so: the difference only shrinks.
      const auto to = next(r);
      if (to < 0 || size(r, to) > std::abs(missing_)) return;
      const int added = std::abs(to - near_[r]) - std::abs(counts_[r] - near_[r]);
      choices.emplace(static_cast<double>(added) / size(r, to), -size(r, to), r);
    };
    for (std::size_t r = 0; r < counts_.size() && !is_done(); ++r) offer(r);
    while (!is_done() && !choices.empty()) {
      const auto [added, minus_size, r] = choices.top();
      choices.pop();
      if (-minus_size > std::abs(missing_)) continue;
      step(r, next(r));
      offer(r);
    }
  }

  /// Passes the sum by the smallest possible step; false: there is none.
  bool overshoot() {
    std::size_t best = counts_.size();
    int smallest = 0;
    for (std::size_t r = 0; r < counts_.size(); ++r) {
      const int to = next(r);
      if (to >= 0 && (best == counts_.size() || size(r, to) < smallest)) best = r, smallest = size(r, to);
    }
    if (best < counts_.size()) step(best, next(best));
    return best < counts_.size();
  }

 private:
  int next(std::size_t r) const { return allowed_[r].next(counts_[r], missing_ > 0 ? 1 : -1); }
  int size(std::size_t r, int to) const { return std::abs(to - counts_[r]); }
  void step(std::size_t r, int to) {
    missing_ -= to - counts_[r];
    counts_[r] = to;
  }

  const std::vector<Allowed>& allowed_;
  std::span<const int> near_;
  std::vector<int> counts_;
  std::int64_t missing_ = 0;  // micro-batches missing from the sum; negative: too many
};

std::optional<std::vector<int>> split_within(std::span<const RankCost> ranks, int micro_batches, double reduce,
                                             std::span<const int> near, double limit) {
  std::vector<Allowed> allowed;
  std::int64_t most = 0;
  for (const RankCost& rank : ranks) {
    most += allowed.emplace_back(rank, micro_batches, reduce, limit).max();
    if (allowed.back().max() < 0) return std::nullopt;
  }
  if (most < micro_batches) return std::nullopt;
  constexpr int kTurns = 8;
  Walk walk(allowed, near, micro_batches);
  walk.approach();
  for (int turn = 0; turn < kTurns && !walk.is_done(); ++turn) {
    if (!walk.overshoot()) return std::nullopt;
    walk.approach();
  }
  return walk.is_done() ? std::optional(walk.counts()) : std::nullopt;
}

}  // namespace

int max_within(const RankCost& rank, int micro_batches, double reduce, double limit) {
  const int most = std::min(micro_batches, rank.max_micro_batches);
  int found = -1;
  for (int sums = 0;; ++sums) {
    const int bound = max_with_sums(rank, most, reduce, limit, sums);
    if (bound <= found) return found;  // more sums leave even less time
    found = std::max(found, highest_bits(bound, sums));
    if (found == bound) return found;
  }
}

std::vector<int> large_split(std::span<const RankCost> ranks, int micro_batches, double reduce,
                             std::span<const int> near, double slack) {
  auto best = greedy_counts(ranks, micro_batches, reduce);
  const auto start = near.empty() ? best : std::vector<int>(near.begin(), near.end());
  double high = step_seconds(ranks, best, reduce), low = fastest_step(ranks, micro_batches, reduce);
  const auto improve = [&](double limit) {
    auto found = split_within(ranks, micro_batches, reduce, start, limit);
    if (!found) return false;
    best = std::move(*found);
    high = step_seconds(ranks, best, reduce);
    return true;
  };
  if (!improve(low)) {
    while (high - low > 1e-6 * high) {
      const double middle = low + (high - low) / 2;
      if (!improve(middle)) low = middle;
    }
  }
  return split_within(ranks, micro_batches, reduce, start, high * (1 + slack)).value_or(best);
}

}  // namespace lockstep::balance
