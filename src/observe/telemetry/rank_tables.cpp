#include "observe/telemetry/rank_tables.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace lockstep::telemetry {

events::ByRank all_values(std::span<const double> by_rank) {
  events::ByRank all;
  for (std::size_t r = 0; r < by_rank.size(); ++r) {
    if (by_rank[r] >= 0) all.emplace_hint(all.end(), static_cast<int>(r), by_rank[r]);
  }
  return all;
}

events::ByRank largest_values(std::span<const double> by_rank) {
  std::vector<std::pair<double, int>> values;  // negated, so that they sort by value and then by rank
  for (std::size_t r = 0; r < by_rank.size(); ++r) {
    if (by_rank[r] >= 0) values.emplace_back(-by_rank[r], static_cast<int>(r));
  }
  const auto end = values.begin() + std::min(values.size(), events::Step::kMostRanks);
  std::partial_sort(values.begin(), end, values.end());
  events::ByRank largest;
  std::for_each(values.begin(), end, [&](const auto& value) { largest[value.second] = -value.first; });
  return largest;
}

events::ByName spread_of_values(std::span<const double> by_rank) {
  std::vector<double> sorted;
  std::copy_if(by_rank.begin(), by_rank.end(), std::back_inserter(sorted), [](double value) { return value >= 0; });
  if (sorted.empty()) return {};
  std::sort(sorted.begin(), sorted.end());
  const std::size_t count = sorted.size();
  return {{"min", sorted.front()},
          {"median", sorted[count / 2]},
          {"p95", sorted[(95 * count + 99) / 100 - 1]},
          {"max", sorted.back()}};
}

double sum_of_values(std::span<const double> by_rank) {
  double sum = 0;
  for (const double value : by_rank) sum += std::max(value, 0.0);
  return sum;
}

}  // namespace lockstep::telemetry
