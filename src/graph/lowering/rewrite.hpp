// What passes share: who reads a value, and taking nodes out of a graph.
#pragma once

#include <vector>

#include "lockstep/graph.hpp"

namespace lockstep {

/// By value, how many nodes read it, as input or as parameter; as the graph's output it is read once more.
[[nodiscard]] std::vector<int> readers_of(const Graph& graph);

/// Takes out the nodes whose `gone` is true, by index, and counts the others anew.
void remove_nodes(Graph& graph, const std::vector<bool>& gone);

}  // namespace lockstep
