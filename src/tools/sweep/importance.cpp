#include "tools/sweep/importance.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace lockstep::sweep {

namespace {

constexpr std::size_t kMostGroups = 5, kFewestInGroup = 4;

std::vector<std::size_t> order_of(const std::vector<double>& numbers) {
  std::vector<std::size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return numbers[a] < numbers[b]; });
  return order;
}

/// 1 for the least; equal ones share the mean of their ranks. So one trial that went wild does not drown the others.
std::vector<double> ranks_of(const std::vector<double>& numbers) {
  const auto order = order_of(numbers);
  std::vector<double> ranks(numbers.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && numbers[order[end]] == numbers[order[first]]) ++end;
    for (std::size_t i = first; i < end; ++i) ranks[order[i]] = static_cast<double>(first + end + 1) / 2;
    first = end;
  }
  return ranks;
}

double mean_of(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / numbers.size();
}

double squares_around(const std::vector<double>& numbers, double center) {
  double sum = 0;
  for (const double number : numbers) sum += (number - center) * (number - center);
  return sum;
}

}  // namespace

std::optional<double> explained_variance(const std::vector<int>& group, const std::vector<double>& values) {
  std::vector<double> known;
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (group[i] >= 0) known.push_back(values[i]);
  }
  const std::vector<double> ranks = ranks_of(known);
  std::map<int, std::vector<double>> by_group;
  std::size_t next = 0;
  for (const int number : group) {
    if (number >= 0) by_group[number].push_back(ranks[next++]);
  }
  if (by_group.size() < 2 || ranks.size() <= by_group.size()) return std::nullopt;
  const double all = squares_around(ranks, mean_of(ranks));
  if (all == 0) return 0;
  double within = 0;
  for (const auto& [number, members] : by_group) within += squares_around(members, mean_of(members));
  const double count = ranks.size(), groups = by_group.size();
  const double noise = within / (count - groups);
  return std::max(0.0, (all - within - (groups - 1) * noise) / all);
}

std::vector<int> groups_of_numbers(const std::vector<double>& numbers) {
  const auto order = order_of(numbers);
  const std::size_t count = std::clamp<std::size_t>(numbers.size() / kFewestInGroup, 1, kMostGroups);
  std::vector<int> groups(numbers.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool same = i > 0 && numbers[order[i]] == numbers[order[i - 1]];
    groups[order[i]] = same ? groups[order[i - 1]] : static_cast<int>(i * count / order.size());
  }
  return groups;
}

}  // namespace lockstep::sweep
