#include "step/balance/split.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>

#include "lockstep/error.hpp"
#include "step/balance/large_split.hpp"

namespace lockstep::balance {

namespace {

// Up to this many ranks * micro-batches the search is exact; its table of choices then takes 16 MB.
constexpr std::int64_t kExactCells = 4'000'000;

// The seconds of each rank for each count that may occur in a best split. Not monotone: 7 micro-batches are three
// partial sums, 8 are one.
class Table {
 public:
  Table(std::span<const RankCost> ranks, int micro_batches, double reduce, double slack)
      : micro_batches_(micro_batches) {
    const double most = step_seconds(ranks, greedy_counts(ranks, micro_batches, reduce), reduce) * (1 + slack);
    for (const RankCost& rank : ranks) {
      auto& row = seconds_.emplace_back();
      for (int n = 0; n <= std::min(micro_batches, rank.max_micro_batches) && rank_seconds(rank, n, 0) <= most; ++n) {
        row.push_back(rank_seconds(rank, n, reduce));
      }
    }
  }
  std::size_t ranks() const { return seconds_.size(); }
  int micro_batches() const { return micro_batches_; }

  /// The counts with which a rank finishes within `limit`.
  std::vector<int> allowed(std::size_t rank, double limit) const {
    std::vector<int> counts;
    const auto& row = seconds_[rank];
    for (std::size_t n = 0; n < row.size(); ++n) {
      if (row[n] <= limit) counts.push_back(n);
    }
    return counts;
  }

  /// All times at which some rank may finish, ascending.
  std::vector<double> limits() const {
    std::vector<double> all;
    for (const auto& row : seconds_) all.insert(all.end(), row.begin(), row.end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

 private:
  int micro_batches_;
  std::vector<std::vector<double>> seconds_;
};

// Whether the ranks together can take at least all micro-batches: necessary, and sufficient except for gaps between
// allowed counts.
bool is_enough(const Table& table, double limit) {
  std::int64_t sum = 0;
  for (std::size_t r = 0; r < table.ranks(); ++r) {
    const auto counts = table.allowed(r, limit);
    if (counts.empty()) return false;
    sum += counts.back();
  }
  return sum >= table.micro_batches();
}

// Whether allowed counts can add up to all micro-batches. Bit s of `sums`: some choice for the ranks so far adds up to
// s.
bool is_feasible(const Table& table, double limit) {
  if (!is_enough(table, limit)) return false;
  const auto bits = static_cast<std::size_t>(table.micro_batches()) + 1, words = (bits + 63) / 64;
  std::vector<std::uint64_t> sums(words, 0), next(words);
  sums[0] = 1;
  for (std::size_t r = 0; r < table.ranks(); ++r) {
    std::fill(next.begin(), next.end(), 0);
    for (const int n : table.allowed(r, limit)) {
      const std::size_t far = static_cast<std::size_t>(n) / 64, near = static_cast<std::size_t>(n) % 64;
      for (std::size_t w = far; w < words; ++w) {
        next[w] |= sums[w - far] << near;
        if (near != 0 && w > far) next[w] |= sums[w - far - 1] >> (64 - near);
      }
    }
    sums.swap(next);
  }
  return (sums[(bits - 1) / 64] >> ((bits - 1) % 64) & 1U) != 0;
}

template <class Holds>
double smallest(const std::vector<double>& limits, const Holds& holds) {
  const auto found = std::partition_point(limits.begin(), limits.end(), [&](double limit) { return !holds(limit); });
  LOCKSTEP_CHECK(found != limits.end(), "the ranks' memory must hold all micro-batches");
  return *found;
}

// The allowed counts nearest to `near`: least[s] is the smallest sum of |count - near| with which the ranks so far take
// s micro-batches.
std::vector<int> nearest(const Table& table, double limit, std::span<const int> near) {
  constexpr int kNever = std::numeric_limits<int>::max() / 2;
  const auto size = static_cast<std::size_t>(table.micro_batches()) + 1;
  std::vector<int> least(size, kNever);
  least[0] = 0;
  std::vector<std::vector<int>> chosen;
  for (std::size_t r = 0; r < table.ranks(); ++r) {
    std::vector<int> next(size, kNever);
    auto& choice = chosen.emplace_back(size, 0);
    for (const int n : table.allowed(r, limit)) {
      const int distance = near.empty() ? 0 : std::abs(n - near[r]);
      for (std::size_t s = n; s < size; ++s) {
        const int sum = least[s - n] + distance;
        if (sum < next[s]) next[s] = sum, choice[s] = n;
      }
    }
    least = std::move(next);
  }
  LOCKSTEP_CHECK(least.back() < kNever, "the limit is feasible");
  std::vector<int> counts(table.ranks());
  std::size_t left = table.micro_batches();
  for (std::size_t r = table.ranks(); r-- > 0;) {
    counts[r] = chosen[r][left];
    left -= counts[r];
  }
  return counts;
}

}  // namespace

// Without an all-reduce, a rank's time only grows with its micro-batches, so greedy is optimal.
std::vector<int> best_split_without_reduce(std::span<const RankCost> ranks, int micro_batches) {
  return greedy_counts(ranks, micro_batches, 0);
}

// The smallest limit with which the ranks together can take all micro-batches. Positive doubles have the same order as
// their bit patterns: bisecting these ends exactly at the time of some rank.
double fastest_step(std::span<const RankCost> ranks, int micro_batches, double reduce) {
  const auto is_enough = [&](double limit) {
    std::int64_t sum = 0;
    for (const RankCost& rank : ranks) {
      const int most = max_within(rank, micro_batches, reduce, limit);
      if (most < 0) return false;
      sum += most;
    }
    return sum >= micro_batches;
  };
  const double reached = step_seconds(ranks, greedy_counts(ranks, micro_batches, reduce), reduce);
  auto low = std::bit_cast<std::uint64_t>(0.0), high = std::bit_cast<std::uint64_t>(reached);
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (is_enough(std::bit_cast<double>(middle))) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return std::bit_cast<double>(high);
}

std::vector<int> best_split(std::span<const RankCost> ranks, int micro_batches, double reduce,
                            std::span<const int> near, double slack) {
  if (static_cast<std::int64_t>(ranks.size()) * micro_batches > kExactCells) {
    return large_split(ranks, micro_batches, reduce, near, slack);
  }
  const Table table(ranks, micro_batches, reduce, slack);
  const double best = smallest(table.limits(), [&](double limit) { return is_feasible(table, limit); });
  return nearest(table, best * (1 + slack), near);
}

}  // namespace lockstep::balance
