// Branches of a model: layers between a fork, or the inputs, and the join, that do not depend on each other. So
// different ranks can compute them concurrently.
#pragma once

#include <vector>

#include "lockstep/graph.hpp"
#include "lockstep/job.hpp"

namespace lockstep {

/// By node, its part. Each branch that is large enough gets a part, as long as there are ranks; what all of them read
/// belongs to the first part, what follows them to the last. No part reads values of a later one. `costs`: by node.
/// Throws Error(configuration), at `place`, unless at least two branches are large enough.
[[nodiscard]] std::vector<int> parts_of_branches(const Graph& graph, const std::vector<double>& costs,
                                                 const Place& place, int ranks);

}  // namespace lockstep
