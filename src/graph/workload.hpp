// A micro-batch's work: its cost, by its ops' own formulas, and a hash that identifies it.
#pragma once

#include <string>

#include "lockstep/graph.hpp"
#include "lockstep/op.hpp"

namespace lockstep {

/// 12 hex digits, equal for runs whose micro-batches are the same work: from the SHA-256 of the graph's ops and the
/// shapes of everything they make (which cover the effect of their attributes).
[[nodiscard]] std::string workload_of(const Graph& graph);

/// For one micro-batch, with the graph's shapes; 0 for an op without a cost.
[[nodiscard]] Cost cost_of(const Graph& graph, const Node& node);
[[nodiscard]] Cost cost_of(const Graph& graph);

}  // namespace lockstep
