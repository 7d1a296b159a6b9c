// The numbers of a step that every rank needs: sums of loss and metrics over all shards, and what the ranks ask for.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "comm/reduce/gradient_reducer.hpp"
#include "exec/executor.hpp"

namespace lockstep::exec {

struct StepSums {
  double loss = 0, count = 0;
  std::vector<std::pair<double, double>> metrics;  ///< (value, count), in the graph's order
  std::uint32_t flags = 0;
  std::vector<double> rank_values;  ///< as many of each rank, rank by rank
};

/// What gather_scalars() gives of each shard: the loss and each metric, with their counts.
[[nodiscard]] constexpr int scalars_per_shard(std::size_t metrics) {
  return 2 + 2 * static_cast<int>(metrics);
}

/// Gathers this step's results of all shards and adds them in order of the shards; gathers the ranks' own values.
/// Every rank calls it.
[[nodiscard]] StepSums gather_scalars(comm::GradientReducer& reducer, const std::vector<exec::ShardScalars>& results,
                                      std::size_t metrics, std::uint32_t flags, std::span<const double> rank_values);

}  // namespace lockstep::exec
