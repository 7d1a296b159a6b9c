// What a shard is to compute: its cost, by its ops' own formulas, and the work in a word.
#pragma once

#include <string>

#include "lockstep/graph.hpp"
#include "lockstep/op.hpp"

namespace lockstep {

/// Runs whose shards are the same work have the same: 12 hex digits of the SHA-256 of the graph's ops, with their
/// attributes' effect: the shapes of all they make.
[[nodiscard]] std::string workload_of(const Graph& graph);

/// Of one shard, as the graph's shapes have it; 0 for an op that says nothing.
[[nodiscard]] Cost cost_of(const Graph& graph, const Node& node);
[[nodiscard]] Cost cost_of(const Graph& graph);

}  // namespace lockstep
