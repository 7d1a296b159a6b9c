// Branches of a model: layers that lie between a fork, or the inputs, and where they come together again, and do not
// depend on each other. So different ranks can compute them side by side.
#pragma once

#include <vector>

#include "lockstep/graph.hpp"
#include "lockstep/job.hpp"

namespace lockstep {

/// By node, its part. Each branch that is worth one has a part, while there are ranks; what all of them read belongs to
/// the first part, what comes after them to the last. No part reads a later one. `costs`: by node. Throws
/// Error(configuration), at `place`, where there are no two branches that are worth it.
[[nodiscard]] std::vector<int> parts_of_branches(const Graph& graph, const std::vector<double>& costs,
                                                 const Place& place, int ranks);

}  // namespace lockstep
