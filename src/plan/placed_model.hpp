// PlacedModel: a job's model as it would be on a given number of ranks: its parts, the program of each, the layout of
// the gradient, the micro-batch assignment. A pure value, computed from a graph and a choice, without starting a rank
// or making a tensor.
//
// It uses the code that training uses (graph/cut, graph/parts, exec/compiled, comm/reduce), so what is predicted is
// what runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/reduce/gradient_buckets.hpp"
#include "comm/reduce/micro_batch_assignment.hpp"
#include "comm/reduce/reduce_plan.hpp"
#include "exec/compiled.hpp"
#include "graph/parts.hpp"
#include "graph/program.hpp"
#include "lockstep/job.hpp"

namespace lockstep::plan {

/// The settings that make a placement.
struct Choice {
  ParallelOptions parallel;
  Recompute recompute = Recompute::never;
  [[nodiscard]] Sharding sharding() const { return parallel.sharding; }
};
[[nodiscard]] Choice choice_of(const Job& job);

/// A model before it is placed. The graph must outlive what is made from it.
struct ModelSetup {
  const Graph& graph;  ///< of one micro-batch, whole, as the device computes it (lowered)
  const JobFile& job;
  std::vector<exec::KernelNeeds> training;   ///< by node of the graph
  std::vector<exec::KernelNeeds> inference;  ///< for evaluations; empty: the run has none
  bool on_gpus = false;                      ///< gradients are not added micro-batch by micro-batch there
};

/// The ranks that a model is placed on.
struct RankSetup {
  std::vector<int> host_of;    ///< by rank: its host; hosts are numbered in order of their lowest rank
  std::vector<int> threads;    ///< by rank: the number that may compute
  std::vector<double> speeds;  ///< by rank: parts and micro-batches are assigned in proportion; empty: equal
  [[nodiscard]] int count() const { return static_cast<int>(host_of.size()); }
};
/// Ranks of one host with `threads` each; 0: each has its share of the `cores`.
[[nodiscard]] RankSetup ranks_of_one_host(int ranks, std::int64_t threads, int cores);

struct PlacedPart {
  std::optional<GraphPart> part;  ///< none: the whole model
  std::vector<int> ranks;
  Program program;                    ///< for training
  std::optional<Program> evaluation;  ///< none: the run does not evaluate
  comm::GradientBuckets buckets;
  comm::MicroBatchAssignment assignment;  ///< by rank of this part
  std::vector<std::int32_t> nodes;        ///< by node of its graph: the node of the whole graph
  const Graph* whole = nullptr;
  [[nodiscard]] const Graph& graph() const { return part ? part->graph : *whole; }
};

struct PlacedModel {
  Choice choice;
  std::vector<PlacedPart> parts;
  std::vector<int> part_of_rank;
  std::vector<int> host_of, workers;  ///< by rank; workers: threads that compute, at most as many as the rank may have
                                      ///< micro-batches
  int in_flight = 1;                  ///< micro-batches that a worker may have between forward and backward
  int micro_batches = 1;
  bool streams_gradients = false;  ///< they are added micro-batch by micro-batch
  [[nodiscard]] bool is_cut() const { return parts.size() > 1; }
  [[nodiscard]] int ranks() const { return static_cast<int>(part_of_rank.size()); }
  [[nodiscard]] const PlacedPart& part_of(int rank) const {
    return parts[static_cast<std::size_t>(part_of_rank[static_cast<std::size_t>(rank)])];
  }
  /// The micro-batches of this rank, ascending.
  [[nodiscard]] std::vector<int> micro_batches_of(int rank) const;
  /// The rank's position among the ranks of its part.
  [[nodiscard]] int number_in_part(int rank) const;
  /// What it adds, sends and owns of its part's gradient. Not for a single rank or `exact: never`, which have no plan.
  [[nodiscard]] comm::ReducePlan reduce_plan(int rank) const;
  [[nodiscard]] comm::Hosts hosts_of(const PlacedPart& part) const;
};

/// Throws Error(configuration), as training would, if the graph cannot be cut as the choice says.
[[nodiscard]] PlacedModel place_model(const ModelSetup& setup, const RankSetup& ranks, const Choice& choice);

}  // namespace lockstep::plan
