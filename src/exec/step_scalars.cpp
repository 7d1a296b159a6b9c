#include "exec/step_scalars.hpp"

namespace lockstep::exec {

StepSums gather_scalars(comm::GradientReducer& reducer, const std::vector<exec::ShardScalars>& results,
                        std::size_t metrics, std::uint32_t flags, std::span<const double> rank_values) {
  const auto columns = static_cast<std::size_t>(scalars_per_shard(metrics));
  std::vector<double> mine;
  for (const auto& shard : results) {
    mine.push_back(shard.loss);
    mine.push_back(shard.count);
    for (const auto& [value, count] : shard.metrics) {
      mine.push_back(value);
      mine.push_back(count);
    }
  }
  auto all = reducer.scalars(mine, static_cast<int>(columns), flags, rank_values);
  StepSums sums;
  sums.metrics.resize(metrics);
  for (std::size_t row = 0; row + columns <= all.values.size(); row += columns) {
    sums.loss += all.values[row];
    sums.count += all.values[row + 1];
    for (std::size_t m = 0; m < metrics; ++m) {
      sums.metrics[m].first += all.values[row + 2 + 2 * m];
      sums.metrics[m].second += all.values[row + 3 + 2 * m];
    }
  }
  sums.flags = all.flags;
  sums.rank_values = std::move(all.rank_values);
  return sums;
}

}  // namespace lockstep::exec
