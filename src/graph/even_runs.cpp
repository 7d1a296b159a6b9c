#include "graph/even_runs.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>

#include "lockstep/error.hpp"

namespace lockstep {

namespace {

constexpr double kRounding = 1e-12;  ///< of sums of costs, relative
constexpr double kNever = std::numeric_limits<double>::infinity();

class Runs {
 public:
  Runs(const Row& row, int runs, int ranks) : row_(row), runs_(runs), ranks_(ranks), sums_(row.costs.size() + 1) {
    for (std::size_t i = 0; i < row.costs.size(); ++i) sums_[i + 1] = sums_[i] + row.costs[i];
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      if (i == 0 || i == row.costs.size() || row.seams[i] != kNever) places_.push_back(i);
    }
  }

  std::vector<int> find(double slack) {
    const std::vector<double> costs = costs_of(*fewest_ranks(lowest_limit()));
    const std::vector<int> ranks_of = ranks_by_cost(costs, ranks_);
    double limit = 0;  // the limit of this cut, which is found again if no other cut has cheaper seams
    for (std::size_t k = 0; k < runs_; ++k) limit = std::max(limit, costs[k] / ranks_of[k]);
    const auto cut = best(
        [&](std::size_t run, std::size_t first, std::size_t end) {
          if (cost(first, end) > limit * ranks_of[run] * (1 + slack + kRounding)) return kNever;
          return first == 0 ? 0 : row_.seams[first];
        },
        [](std::size_t) { return std::numeric_limits<double>::max(); });
    LOCKSTEP_CHECK(cut.has_value(), "a row that can be cut into as many runs");
    return numbers(*cut);
  }

 private:
  using Bounds = std::vector<std::size_t>;  // the beginning of each run, and the end of the last

  double cost(std::size_t first, std::size_t end) const { return sums_[end] - sums_[first]; }

  std::vector<double> costs_of(const Bounds& bounds) const {
    std::vector<double> costs;
    for (std::size_t k = 0; k + 1 < bounds.size(); ++k) costs.push_back(cost(bounds[k], bounds[k + 1]));
    return costs;
  }

  // The lowest cost per rank for which there are enough ranks, up to rounding. It is not far above an equal share, and
  // the search is fast there, because few ranks may be wasted.
  double lowest_limit() {
    double low = sums_.back() / ranks_, high = low;
    for (double more = 1.0 / 64; high < sums_.back() && !suffices(high); more *= 2) {
      low = high;
      high = std::min(sums_.back(), sums_.back() / ranks_ * (1 + more));
    }
    while (high - low > 1e-9 * high) {
      const double middle = low + (high - low) / 2;
      (suffices(middle) ? high : low) = middle;
    }
    return high;
  }
  // Whether there are enough ranks for this limit: as fewest_ranks(), without the cut, in loops that compilers
  // vectorize.
  bool suffices(double limit) {
    const std::size_t width = places_.size();
    std::vector<double> needs(width * width), most, lowest(width, kNever), next;  // by place
    for (std::size_t first = 0; first < width; ++first) {
      most.push_back(most_ranks(limit, places_[first]));
      for (std::size_t end = first + 1; end < width; ++end)
        needs[first * width + end] = ranks_for(cost(places_[first], places_[end]), limit);
    }
    lowest[0] = 0;
    for (std::size_t k = 0; k < runs_; ++k) {
      next.assign(width, kNever);
      for (std::size_t first = 0; first + 1 < width; ++first) {
        if (lowest[first] == kNever) continue;
        const double before = lowest[first], *const need = needs.data() + first * width;
        for (std::size_t end = first + 1; end < width; ++end) next[end] = std::min(next[end], before + need[end]);
      }
      for (std::size_t end = 0; end < width; ++end) lowest[end] = next[end] > most[end] ? kNever : next[end];
    }
    return lowest.back() != kNever;
  }

  [[nodiscard]] static double ranks_for(double cost, double limit) {
    if (cost <= limit) return 1;
    const double ranks = cost / limit;
    const double whole = static_cast<std::int64_t>(ranks);  // std::ceil is a call
    return whole < ranks ? whole + 1 : whole;
  }
  // Those that may be used up to there: the items that are left need at least their cost divided by the limit.
  double most_ranks(double limit, std::size_t end) const {
    return ranks_ + 1e-9 - (sums_.back() - sums_[end]) / limit * (1 - 1e-12);
  }
  // None if there are not enough ranks.
  std::optional<Bounds> fewest_ranks(double limit) {
    std::vector<double> most;  // by end
    for (std::size_t end = 0; end < sums_.size(); ++end) most.push_back(most_ranks(limit, end));
    return best([&](std::size_t, std::size_t first, std::size_t end) { return ranks_for(cost(first, end), limit); },
                [&](std::size_t end) { return most[end]; });
  }

  // The cut with the lowest sum of the runs' prices. price(number of the run, its first item, its end) is infinite
  // for all ends behind one for which it is. most(end): the highest sum up to there of a cut that is wanted; none:
  // there is no such cut.
  template <class Price, class Most>
  std::optional<Bounds> best(Price price, Most most) {
    const std::size_t count = row_.costs.size(), width = count + 1;
    std::vector<double> lowest((runs_ + 1) * width, kNever);  // by number of runs and of items in them
    Bounds begins((runs_ + 1) * width);
    lowest[0] = 0;
    for (std::size_t k = 1; k <= runs_; ++k) {
      for (std::size_t first = k - 1; first < count; ++first) {
        const double before = lowest[(k - 1) * width + first];
        if (before == kNever) continue;
        for (std::size_t end = first + 1; end <= count; ++end) {
          if (end < count && row_.seams[end] == kNever) continue;
          const double sum = before + price(k - 1, first, end);
          if (sum == kNever) break;
          if (sum > most(end) || sum >= lowest[k * width + end]) continue;
          lowest[k * width + end] = sum;
          begins[k * width + end] = first;
        }
      }
    }
    if (lowest.back() == kNever) return std::nullopt;
    Bounds bounds(runs_ + 1, count);
    for (std::size_t k = runs_; k > 0; --k) bounds[k - 1] = begins[k * width + bounds[k]];
    return bounds;
  }

  std::vector<int> numbers(const Bounds& bounds) const {
    std::vector<int> numbers(row_.costs.size());
    for (std::size_t k = 0; k < runs_; ++k) {
      for (std::size_t i = bounds[k]; i < bounds[k + 1]; ++i) numbers[i] = k;
    }
    return numbers;
  }

  const Row& row_;
  const std::size_t runs_;
  const int ranks_;
  std::vector<double> sums_;         // sums of the costs before each item
  std::vector<std::size_t> places_;  // where a run may begin or end
};

}  // namespace

std::vector<int> ranks_by_cost(const std::vector<double>& costs, int ranks, std::int64_t most) {
  std::vector<int> ranks_of(costs.size(), 1);
  for (auto left = ranks - static_cast<std::ptrdiff_t>(costs.size()); left > 0; --left) {
    std::size_t next = costs.size();  // the one with most cost per rank
    for (std::size_t i = 0; i < costs.size(); ++i) {
      if (ranks_of[i] >= most) continue;
      if (next == costs.size() || costs[i] / ranks_of[i] > costs[next] / ranks_of[next]) next = i;
    }
    LOCKSTEP_CHECK(next < costs.size(), "no more ranks than the parts can have");
    ++ranks_of[next];
  }
  return ranks_of;
}

std::vector<int> even_runs(const Row& row, int runs, int ranks, double slack) {
  return Runs(row, runs, ranks).find(slack);
}

}  // namespace lockstep
