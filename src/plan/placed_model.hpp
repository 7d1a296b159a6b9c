// PlacedModel: a job's model as so many ranks would have it: its parts, the program of each, where the gradient lies,
// who computes which shards. A pure value, from a graph and a choice; no rank is started and no tensor is made.
//
// It is made with what training is made with (graph/cut, graph/parts, exec/compiled, comm/reduce): what is predicted is
// what runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/reduce/gradient_buckets.hpp"
#include "comm/reduce/reduce_plan.hpp"
#include "comm/reduce/shard_assignment.hpp"
#include "exec/compiled.hpp"
#include "graph/parts.hpp"
#include "graph/program.hpp"
#include "lockstep/job.hpp"

namespace lockstep::plan {

/// What a placement is chosen of.
struct Choice {
  ParallelOptions parallel;
  Recompute recompute = Recompute::never;
  [[nodiscard]] Sharding sharding() const { return parallel.sharding; }
};
[[nodiscard]] Choice choice_of(const Job& job);

/// A model before it is placed. The graph outlives what is made of it.
struct ModelSetup {
  const Graph& graph;  ///< of one shard, whole, as the device computes it: lowered
  const JobFile& job;
  std::vector<exec::KernelNeeds> training;   ///< by node of the graph
  std::vector<exec::KernelNeeds> inference;  ///< the same of evaluations; empty: the run has none
};

/// The ranks that a model is placed on.
struct RankSetup {
  std::vector<int> host_of;    ///< by rank: its host, numbered in order of their lowest rank
  std::vector<int> threads;    ///< by rank: that may compute
  std::vector<double> speeds;  ///< by rank: parts and shards are dealt in proportion; empty: equal
  [[nodiscard]] int count() const { return static_cast<int>(host_of.size()); }
};
/// Ranks of one host, `threads` each; 0: each has its part of the `cores`.
[[nodiscard]] RankSetup ranks_of_one_host(int ranks, std::int64_t threads, int cores);

struct PlacedPart {
  std::optional<GraphPart> part;  ///< none: the whole model
  std::vector<int> ranks;
  Program program;                    ///< of training
  std::optional<Program> evaluation;  ///< none: the run evaluates nothing
  comm::GradientBuckets buckets;
  comm::ShardAssignment assignment;  ///< by rank of this part
  std::vector<std::int32_t> nodes;   ///< by node of its graph: that of the whole graph
  const Graph* whole = nullptr;
  [[nodiscard]] const Graph& graph() const { return part ? part->graph : *whole; }
};

struct PlacedModel {
  Choice choice;
  std::vector<PlacedPart> parts;
  std::vector<int> part_of_rank;
  std::vector<int> host_of, workers;  ///< by rank; workers: threads that compute, no more than it may have shards
  int in_flight = 1;                  ///< shards of a worker between forward and backward
  int shards = 1;
  [[nodiscard]] bool is_cut() const { return parts.size() > 1; }
  [[nodiscard]] int ranks() const { return static_cast<int>(part_of_rank.size()); }
  [[nodiscard]] const PlacedPart& part_of(int rank) const {
    return parts[static_cast<std::size_t>(part_of_rank[static_cast<std::size_t>(rank)])];
  }
  /// Of this rank, ascending.
  [[nodiscard]] std::vector<int> shards_of(int rank) const;
  /// Its place among the ranks of its part.
  [[nodiscard]] int number_in_part(int rank) const;
  /// What it adds, sends and owns of its part's gradient. One rank, or `exact: never`, has no plan of its own.
  [[nodiscard]] comm::ReducePlan reduce_plan(int rank) const;
  [[nodiscard]] comm::Hosts hosts_of(const PlacedPart& part) const;
};

/// Throws Error(configuration), as training would, where the graph cannot be cut as the choice says.
[[nodiscard]] PlacedModel place_model(const ModelSetup& setup, const RankSetup& ranks, const Choice& choice);

}  // namespace lockstep::plan
