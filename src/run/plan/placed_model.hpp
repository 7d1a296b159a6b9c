// PlacedModel: a job's model as it would be on a given number of ranks: its parts, the program of each, the layout of
// the gradient, the micro-batch assignment. A pure value, computed from a graph and a choice, without starting a rank
// or making a tensor.
//
// It uses the code that training uses (graph/cut, graph/parts, step/exec/compiled, comm/reduce), so what is predicted
// is what runs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "comm/reduce/gradient_buckets.hpp"
#include "comm/reduce/micro_batch_assignment.hpp"
#include "comm/reduce/rank_loads.hpp"
#include "comm/transport/topology.hpp"
#include "graph/parts.hpp"
#include "graph/program.hpp"
#include "lockstep/job.hpp"
#include "step/exec/compiled.hpp"
#include "step/exec/device.hpp"

namespace lockstep::plan {

/// The settings that make a placement.
struct Choice {
  ParallelOptions parallel;
  Recompute recompute = Recompute::never;
  Sharding sharding() const { return parallel.sharding; }
};
[[nodiscard]] Choice choice_of(const Job& job);

/// A model before it is placed. The graph must outlive what is made from it.
struct ModelSetup {
  const Graph& graph;  ///< of one micro-batch, whole, as the device computes it (lowered)
  const JobFile& job;
  /// Of the kernels, by node of the graph.
  struct Needs {
    std::vector<exec::KernelNeeds> training;
    std::vector<exec::KernelNeeds> inference;  ///< for evaluations; empty: the run has none
  };
  Needs keeping;                 ///< kernels keep packed weights
  std::optional<Needs> packing;  ///< weights are packed for each call, as where parameters are divided; none: on GPUs
  bool on_gpus = false;          ///< each rank has one
  const Needs& needs(Sharding sharding) const { return packing && divides_parameters(sharding) ? *packing : keeping; }
};
/// The graph, lowered for the device, and the job must outlive it.
[[nodiscard]] ModelSetup model_setup(const Graph& graph, const JobFile& job, const exec::Device& device,
                                     bool evaluates);

/// The ranks that a model is placed on.
struct RankSetup {
  std::vector<int> host_of;             ///< by rank: its host; hosts are numbered in order of their lowest rank
  std::vector<int> threads;             ///< by rank: the number that may compute
  std::vector<double> speeds;           ///< by rank: parts and micro-batches are assigned in proportion; empty: equal
  std::vector<int> micro_batches = {};  ///< by rank: as a run has dealt them; empty: by speed
  int count() const { return host_of.size(); }
};
/// Ranks of one host with `threads` each; 0: each has its share of the `cores`.
[[nodiscard]] RankSetup ranks_of_one_host(int ranks, std::int64_t threads, int cores);

/// What the ranks of a part compute, if they recompute what the choice says.
struct PartPrograms {
  Program training;
  std::optional<Program> evaluation;  ///< none: the run does not evaluate
};

/// The micro-batches of a part's ranks, and what follows from them; by rank of the part.
struct DealtMicroBatches {
  comm::MicroBatchAssignment assignment;
  std::vector<comm::SumLoad> sums;
};

/// The layout of a part's gradient, and what its ranks have of it.
struct PartLayout {
  std::shared_ptr<const comm::GradientBuckets> buckets;        ///< large; only memory_of() needs it
  int count = 0;                                               ///< of buckets
  std::int64_t elements = 0;                                   ///< in all buckets
  std::shared_ptr<const std::vector<comm::SliceLoad>> slices;  ///< by rank of the part
};

struct PlacedPart {
  std::shared_ptr<const GraphPart> part;  ///< null: the whole model
  std::vector<int> ranks;
  std::shared_ptr<const comm::Hosts> hosts;  ///< of its ranks
  std::vector<std::int32_t> nodes;           ///< by node of its graph: the node of the whole graph
  const Graph* whole = nullptr;
  std::vector<std::size_t> shared;  ///< those of its weights that other parts have, too
  std::shared_ptr<const PartPrograms> programs;
  std::shared_ptr<const DealtMicroBatches> dealt;
  PartLayout layout;
  const Graph& graph() const { return part ? part->graph : *whole; }
  const Program& program() const { return programs->training; }
};

struct PlacedModel {
  Choice choice;
  std::vector<PlacedPart> parts;
  std::vector<int> part_of_rank, number_in_part;  ///< by rank; the number is among the ranks of its part
  std::vector<int> host_of, workers;  ///< by rank; workers: threads that compute, at most as many as the rank may have
                                      ///< micro-batches
  int in_flight = 1;                  ///< micro-batches that a worker may have between forward and backward
  int micro_batches = 1;
  bool streams_gradients = false;  ///< they are added micro-batch by micro-batch
  bool is_cut() const { return parts.size() > 1; }
  int ranks() const { return part_of_rank.size(); }
  const PlacedPart& part_of(int rank) const { return parts[index(part_of_rank, rank)]; }
  /// In the order of computation.
  const std::vector<int>& micro_batches_of(int rank) const {
    return part_of(rank).dealt->assignment.micro_batches_of_rank[index(number_in_part, rank)];
  }
  const comm::SumLoad& sums_of(int rank) const { return part_of(rank).dealt->sums[index(number_in_part, rank)]; }
  const comm::SliceLoad& slices_of(int rank) const {
    return (*part_of(rank).layout.slices)[index(number_in_part, rank)];
  }
  /// Number of ranks of its host that have its part.
  int local_ranks(int rank) const;

 private:
  static std::size_t index(const std::vector<int>& of, int rank) { return of[rank]; }
};

/// Places a model on the same ranks by one choice after the other. What two choices have in common is made once, if
/// choices with the same number of parts follow one another.
class Placer {
 public:
  /// References must outlive it.
  Placer(const ModelSetup& setup, const RankSetup& ranks) : setup_(setup), ranks_(ranks) {}

  /// Throws Error(configuration), as training would, if the graph cannot be cut as the choice says.
  [[nodiscard]] PlacedModel place(const Choice& choice);

 private:
  using Programs = std::vector<std::shared_ptr<const PartPrograms>>;
  struct Cut {
    std::vector<PlacedPart> parts;
    std::vector<int> part_of_rank, number_in_part, workers;
    std::map<bool, std::vector<std::shared_ptr<const DealtMicroBatches>>> dealt;  ///< by whether it is interleaved
    /// By how it recomputes, and whether parameters are divided.
    std::map<std::pair<Recompute, bool>, Programs> programs;
    /// By how it recomputes, and whether gradients are divided.
    std::map<std::pair<Recompute, bool>, std::vector<PartLayout>> layouts;
  };
  Cut& cut_of(const ParallelOptions& parallel);
  void deal(Cut& cut, bool interleaved) const;
  void compile(Cut& cut, const Choice& choice) const;
  void lay_out(Cut& cut, const Choice& choice) const;

  const ModelSetup& setup_;
  const RankSetup& ranks_;
  std::optional<std::int64_t> parts_;  ///< of cut_, if it is made by number; none: it is not to be used again
  Cut cut_;
};

/// Throws Error(configuration), as training would, if the graph cannot be cut as the choice says.
[[nodiscard]] PlacedModel place_model(const ModelSetup& setup, const RankSetup& ranks, const Choice& choice);

}  // namespace lockstep::plan
