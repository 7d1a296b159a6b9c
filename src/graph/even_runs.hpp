// Cuts a row into runs of even cost: layers into parts, or parts into fewer parts.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace lockstep {

/// Items in a row.
struct Row {
  std::vector<double> costs;  ///< not below 0
  std::vector<double> seams;  ///< price of a cut right before each item; infinite: not allowed. The first is ignored
};

/// Number of ranks for each item, `ranks` in total: at least one, at most `most`, and such that the largest cost per
/// rank is as low as possible. There must be at least as many ranks as costs, and at most `most` for each.
[[nodiscard]] std::vector<int> ranks_by_cost(const std::vector<double>& costs, int ranks,
                                             std::int64_t most = std::numeric_limits<int>::max());

/// By item of the row, the number of its run. Each run has one rank or more. The largest cost per rank is as low as
/// possible, up to the fraction `slack`; within that, for the number of ranks of each run, the seams are as cheap as
/// possible. The row must allow that many runs, and there must be at least as many ranks as runs.
[[nodiscard]] std::vector<int> even_runs(const Row& row, int runs, int ranks, double slack = 0);

}  // namespace lockstep
