// What a shard is, in a word: runs whose shards are the same work have the same.
#pragma once

#include <string>

#include "lockstep/graph.hpp"

namespace lockstep {

/// 12 hex digits of the SHA-256 of the graph's ops, with their attributes' effect: the shapes of all they make.
[[nodiscard]] std::string workload_of(const Graph& graph);

}  // namespace lockstep
