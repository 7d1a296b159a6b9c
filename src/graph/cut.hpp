// Where a model is cut into parts, and which ranks compute them: turns the job's settings into the table that split()
// takes (graph/parts.hpp). The cuts change no bit.
//
// Parts are numbered such that none reads a later one. Each rank computes one part; a part may have several ranks,
// which share its micro-batches. All ranks are assumed to be equally fast; if they are not, run/plan/placement starts
// from this.
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

/// Whether the job leaves the cuts to the costs of layers.
[[nodiscard]] bool is_cut_by_cost(const Graph& graph, const ParallelOptions& parallel);

/// The nodes as a row to be cut: their costs, and the bytes that would cross a cut before each.
[[nodiscard]] Row row_to_cut(const Graph& graph);

/// The part of each node of a graph that may have been lowered: at most as many parts as ranks, and one part if the job
/// cuts nothing. Parts cut by cost are even in cost per rank, and among such cuts the one that sends least is taken.
/// Loss and metrics are in the part that makes the model's output. Throws Error(configuration), with the place in the
/// job file, if the graph cannot be cut as the job says.
[[nodiscard]] std::vector<int> cut(const Graph& graph, const ParallelOptions& parallel, int ranks);

/// Assigns ranks 0 ... `ranks` - 1 to the parts in order: as many to each as it `wants`, or, if that is empty, in
/// proportion to `costs`, at least one and at most `micro_batches` each. There must not be more parts than ranks.
[[nodiscard]] std::vector<std::vector<int>> ranks_of_parts(const std::vector<double>& costs,
                                                           const std::vector<std::int64_t>& wants, int ranks,
                                                           std::int64_t micro_batches);

/// cut() and ranks_of_parts(). Every rank gets the same result. Also throws Error(configuration) if a part would have
/// more ranks than `micro_batches`, of which each rank computes at least one.
[[nodiscard]] Placement place_parts(const Graph& graph, const ParallelOptions& parallel, int ranks,
                                    std::int64_t micro_batches = std::numeric_limits<int>::max());

}  // namespace lockstep
