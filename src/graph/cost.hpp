// What nodes cost to compute, by their ops' own formulas.
#pragma once

#include "lockstep/graph.hpp"
#include "lockstep/op.hpp"

namespace lockstep {

/// Of one shard, as the graph's shapes have it; 0 for an op that says nothing.
[[nodiscard]] Cost cost_of(const Graph& graph, const Node& node);
[[nodiscard]] Cost cost_of(const Graph& graph);

}  // namespace lockstep
