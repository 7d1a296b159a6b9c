// A row cut into runs of even cost: layers into parts, or parts into fewer of them.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace lockstep {

/// What stands in a row, one after the other.
struct Row {
  std::vector<double> costs;  ///< not below 0
  std::vector<double> seams;  ///< what it takes to cut right before each; infinite: never there. The first is not read
};

/// For each, how many of the `ranks`: at least one, no more than `most`, and such that the largest cost for a rank is
/// as low as can be. There are no fewer ranks than costs, and no more than `most` for each.
[[nodiscard]] std::vector<int> ranks_by_cost(const std::vector<double>& costs, int ranks,
                                             std::int64_t most = std::numeric_limits<int>::max());

/// By item of the row, the number of its run. Each run has one rank or more. The largest cost for a rank is as low as
/// can be, but for `slack`, a share of it; within that, and with the ranks that this takes, the seams are as cheap as
/// can be. The row can be cut into that many runs, and there are no fewer ranks than runs.
[[nodiscard]] std::vector<int> even_runs(const Row& row, int runs, int ranks, double slack = 0);

}  // namespace lockstep
