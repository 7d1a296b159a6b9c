// Where a model is cut and which ranks compute its parts, if ranks are not equally fast. Starts with what graph/cut
// finds for equal ranks, and changes it as long as that shortens a step in the simulation by which training orders its
// tasks (step/balance/pipeline): a cut moves, a rank moves to another part, ranks or parts are swapped. Nothing is
// measured and no clock is read, so every rank finds the same placement; and no placement changes a bit.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/cut.hpp"
#include "graph/parts.hpp"
#include "step/balance/pipeline.hpp"

namespace lockstep::plan {

/// Like place_parts() of graph/cut, including its errors. `speeds`: by rank, in any unit; if all are equal or one is 0,
/// or if the job sets the number of ranks of a part, the result is that of place_parts().
[[nodiscard]] Placement place_by_speed(const Graph& graph, const ParallelOptions& parallel,
                                       const std::vector<double>& speeds, std::int64_t micro_batches);

/// Scaled so that the slowest rank's is 1, the speed that counted_costs() refer to. All 1 if any is 0.
[[nodiscard]] std::vector<double> in_proportion(std::vector<double> speeds);

/// Costs of parts for the simulation, from counted operations: only their ratios are meaningful.
[[nodiscard]] std::vector<balance::PartCost> counted_costs(const std::vector<GraphPart>& parts);

}  // namespace lockstep::plan
