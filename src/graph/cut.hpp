// Where a model is cut into parts, and which ranks compute them: from what the job says to the table that split() takes
// (graph/parts.hpp). Where it is cut changes no bit.
//
// Parts are numbered such that none reads a later one. Each rank computes one part; a part may have several ranks,
// which share its shards. Ranks are taken to be equally fast here; plan/placement begins with this where they are not.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "graph/even_runs.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/job.hpp"

namespace lockstep {

struct Placement {
  std::vector<int> part_of_node;                ///< by node
  std::vector<std::vector<int>> ranks_of_part;  ///< by part: ascending
};

/// Whether the job leaves it to the costs of layers where the model is cut.
[[nodiscard]] bool is_cut_by_cost(const Graph& graph, const ParallelOptions& parallel);

/// The nodes as they may be cut from each other: their costs, and the bytes that would cross before each.
[[nodiscard]] Row row_to_cut(const Graph& graph);

/// The part of each node of a graph as it is computed, which lowering may have rewritten: at most as many parts as
/// there are ranks, and one where the job cuts nothing. Those that are cut by cost are even in cost for a rank, and of
/// such cuts the one that sends least. Loss and metrics are in one part with what makes the model's output. Throws
/// Error(configuration), with the place in the job file, where the graph cannot be cut as the job says.
[[nodiscard]] std::vector<int> cut(const Graph& graph, const ParallelOptions& parallel, int ranks);

/// Ranks 0 ... `ranks` - 1 in the order of the parts: as many for each as it `wants`, or, if that is empty, in
/// proportion to `costs`, each at least one and no more than `shards`. There are no more parts than ranks.
[[nodiscard]] std::vector<std::vector<int>> ranks_of_parts(const std::vector<double>& costs,
                                                           const std::vector<std::int64_t>& wants, int ranks,
                                                           std::int64_t shards);

/// Both. Every rank finds the same. Throws Error(configuration), too, where a part would have more ranks than `shards`,
/// of which each computes one or more.
[[nodiscard]] Placement place_parts(const Graph& graph, const ParallelOptions& parallel, int ranks,
                                    std::int64_t shards = std::numeric_limits<int>::max());

}  // namespace lockstep
