// Where a model is cut and which ranks compute its parts, where ranks are not equally fast. What graph/cut finds for
// equal ranks is changed as long as that makes a step shorter in the simulation by which training orders its tasks
// (balance/pipeline): a cut moves, a rank goes to another part, ranks or parts change places. Nothing is measured and
// no clock is read, so every rank finds the same; and no placement changes a bit.
#pragma once

#include <cstdint>
#include <vector>

#include "balance/pipeline.hpp"
#include "graph/cut.hpp"
#include "graph/parts.hpp"

namespace lockstep::plan {

/// As place_parts() of graph/cut, whose errors it throws. `speeds`: by rank, in any unit; where all are equal or one is
/// 0, or the job says how many ranks a part has, it is that placement itself.
[[nodiscard]] Placement place_by_speed(const Graph& graph, const ParallelOptions& parallel,
                                       const std::vector<double>& speeds, std::int64_t shards);

/// The same proportions; the slowest rank's is 1, which is the speed that counted_costs() are of. All 1, if any is 0.
[[nodiscard]] std::vector<double> in_proportion(std::vector<double> speeds);

/// Parts as the simulation takes them, by counted operations: proportions, no times.
[[nodiscard]] std::vector<balance::PartCost> counted_costs(const std::vector<GraphPart>& parts);

}  // namespace lockstep::plan
