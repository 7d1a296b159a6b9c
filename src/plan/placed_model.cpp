#include "plan/placed_model.hpp"

#include <algorithm>
#include <numeric>

#include "core/round_up.hpp"
#include "exec/part_worker.hpp"
#include "exec/worker.hpp"
#include "graph/weight_order.hpp"
#include "optim/other_parts.hpp"
#include "plan/placement.hpp"

namespace lockstep::plan {

namespace {

std::vector<exec::KernelNeeds> needs_of_part(std::span<const exec::KernelNeeds> whole,
                                             const std::vector<std::int32_t>& nodes) {
  std::vector<exec::KernelNeeds> needs;
  for (const std::int32_t node : nodes) needs.push_back(whole[static_cast<std::size_t>(node)]);
  return needs;
}

Topology topology_of(const std::vector<int>& host_of_rank, const std::vector<int>& ranks) {
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(std::to_string(host_of_rank[static_cast<std::size_t>(rank)]));
  return comm::make_topology(names);
}

template <class T>
std::vector<T> of_part(const std::vector<T>& by_rank, const std::vector<int>& ranks) {
  std::vector<T> values;
  for (const int rank : ranks) values.push_back(by_rank[static_cast<std::size_t>(rank)]);
  return values;
}

comm::MicroBatchAssignment deal(int micro_batches, const RankSetup& setup, const std::vector<int>& ranks,
                                bool interleaved) {
  const std::vector<int> counts = setup.speeds.empty()
                                      ? comm::equal_counts(micro_batches, static_cast<int>(ranks.size()))
                                      : comm::counts_by_weights(micro_batches, of_part(setup.speeds, ranks));
  const std::vector<int> hosts = topology_of(setup.host_of, ranks).host_of;
  const comm::MicroBatchAssignment placed = comm::place_micro_batches(counts, {}, hosts);
  return interleaved ? comm::interleave_micro_batches(placed, hosts) : placed;
}

// As in training: a rank whose share may change has at most twice an equal share.
int workers_of(int threads, int micro_batches, std::size_t ranks_of_part) {
  const int ranks = static_cast<int>(ranks_of_part);
  const int most = ranks == 1 ? micro_batches : std::min(micro_batches, 2 * divide_up(micro_batches, ranks));
  return std::clamp(threads, 1, std::max(1, most));
}

/// `shared`: those of its weights that other parts have, too.
void compile_part(const ModelSetup& setup, PlacedPart& part, const Choice& choice,
                  const std::vector<std::size_t>& shared) {
  const PartBoundary* boundary = part.part ? &part.part->boundary : nullptr;
  const auto training = needs_of_part(setup.training, part.nodes);
  part.program = exec::program_of(part.graph(), Mode::training, training,
                                  {.in_place = true, .recompute = choice.recompute, .boundary = boundary});
  if (!setup.inference.empty()) {
    part.evaluation = exec::program_of(part.graph(), Mode::inference, needs_of_part(setup.inference, part.nodes),
                                       {.boundary = boundary});
  }
  const bool divided = choice.sharding() != Sharding::none && part.ranks.size() > 1;
  part.buckets = exec::gradient_buckets(part.program, setup.job.bucket_bytes, setup.job.micro_batches, divided, shared,
                                        stored_in_another_order(part.graph()),
                                        setup.on_gpus ? static_cast<int>(part.ranks.size()) : 0);
  part.buckets.spread_owners = !setup.on_gpus;
}

}  // namespace

Choice choice_of(const Job& job) {
  return {job.parallel, job.recompute};
}

RankSetup ranks_of_one_host(int ranks, std::int64_t threads, int cores) {
  const int each = threads > 0 ? static_cast<int>(threads) : std::max(1, cores / ranks);
  const auto count = static_cast<std::size_t>(ranks);
  return {std::vector<int>(count, 0), std::vector<int>(count, each), {}};
}

std::vector<int> PlacedModel::micro_batches_of(int rank) const {
  const PlacedPart& part = part_of(rank);
  std::vector<int> own = part.assignment.micro_batches_of_rank[static_cast<std::size_t>(number_in_part(rank))];
  std::sort(own.begin(), own.end());
  return own;
}

int PlacedModel::number_in_part(int rank) const {
  const auto& ranks = part_of(rank).ranks;
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

comm::Hosts PlacedModel::hosts_of(const PlacedPart& part) const {
  return comm::Hosts(topology_of(host_of, part.ranks));
}

comm::ReducePlan PlacedModel::reduce_plan(int rank) const {
  const PlacedPart& part = part_of(rank);
  return comm::reduce_plan(part.assignment, hosts_of(part), part.buckets, number_in_part(rank));
}

PlacedModel place_model(const ModelSetup& setup, const RankSetup& ranks, const Choice& choice) {
  PlacedModel placed;
  placed.choice = choice;
  placed.host_of = ranks.host_of;
  placed.micro_batches = static_cast<int>(setup.job.micro_batches);
  placed.streams_gradients = divides_gradients(choice.sharding()) && !setup.on_gpus;
  const std::vector<double> equal(static_cast<std::size_t>(ranks.count()), 1.0);
  const Placement placement = place_by_speed(setup.graph, choice.parallel, ranks.speeds.empty() ? equal : ranks.speeds,
                                             setup.job.micro_batches);
  std::vector<GraphPart> parts;
  if (placement.ranks_of_part.size() > 1) parts = split(setup.graph, placement.part_of_node);
  std::vector<std::vector<std::size_t>> shared(placement.ranks_of_part.size());
  for (std::size_t p = 0; p < parts.size(); ++p) shared[p] = optim::shared_weights(parts, static_cast<int>(p));
  for (std::size_t p = 0; p < placement.ranks_of_part.size(); ++p) {
    PlacedPart& part = placed.parts.emplace_back();
    part.ranks = placement.ranks_of_part[p];
    part.whole = &setup.graph;
    if (parts.empty()) {
      part.nodes.resize(setup.graph.nodes.size());
      std::iota(part.nodes.begin(), part.nodes.end(), 0);
    } else {
      part.part = std::move(parts[p]);
      part.nodes = part.part->nodes;
    }
    compile_part(setup, part, choice, shared[p]);
    part.assignment = deal(placed.micro_batches, ranks, part.ranks, placed.streams_gradients);
  }
  placed.in_flight = choice.parallel.in_flight > 0 ? static_cast<int>(choice.parallel.in_flight)
                                                   : exec::default_in_flight(placement.ranks_of_part);
  placed.part_of_rank.resize(static_cast<std::size_t>(ranks.count()));
  placed.workers.resize(placed.part_of_rank.size());
  for (std::size_t p = 0; p < placed.parts.size(); ++p) {
    for (const int rank : placed.parts[p].ranks) {
      const auto r = static_cast<std::size_t>(rank);
      placed.part_of_rank[r] = static_cast<int>(p);
      placed.workers[r] = workers_of(ranks.threads[r], placed.micro_batches, placed.parts[p].ranks.size());
    }
  }
  return placed;
}

}  // namespace lockstep::plan
