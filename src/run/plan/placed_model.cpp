#include "run/plan/placed_model.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "core/round_up.hpp"
#include "graph/weight_order.hpp"
#include "run/plan/placement.hpp"
#include "step/exec/micro_batch_gradients.hpp"
#include "step/exec/part_links.hpp"
#include "step/optim/other_parts.hpp"

namespace lockstep::plan {

namespace {

std::vector<exec::KernelNeeds> needs_of_part(std::span<const exec::KernelNeeds> whole,
                                             const std::vector<std::int32_t>& nodes) {
  std::vector<exec::KernelNeeds> needs;
  for (const std::int32_t node : nodes) needs.push_back(whole[node]);
  return needs;
}

Topology topology_of(const std::vector<int>& host_of_rank, const std::vector<int>& ranks) {
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(std::to_string(host_of_rank[rank]));
  return comm::make_topology(names);
}

template <class T>
std::vector<T> of_part(const std::vector<T>& by_rank, const std::vector<int>& ranks) {
  std::vector<T> values;
  for (const int rank : ranks) values.push_back(by_rank[rank]);
  return values;
}

bool is_number_of_parts(const ParallelOptions& parallel) {
  return parallel.cuts.empty() && !parallel.branches;
}

// As in training: a rank whose share may change has at most twice an equal share.
int workers_of(int threads, int micro_batches, std::size_t ranks_of_part) {
  const int ranks = ranks_of_part;
  const int most = ranks == 1 ? micro_batches : std::min(micro_batches, 2 * divide_up(micro_batches, ranks));
  return std::clamp(threads, 1, std::max(1, most));
}

}  // namespace

ModelSetup model_setup(const Graph& graph, const JobFile& job, const exec::Device& device, bool evaluates) {
  const auto needs = [&](Mode mode, bool keeps_weights) {
    return exec::needs_of(exec::KernelSet(graph, mode, device, 0, {}, keeps_weights));
  };
  ModelSetup setup{graph, job, {needs(Mode::training, true), {}}, ModelSetup::Needs{needs(Mode::training, false), {}}};
  if (evaluates) {
    setup.keeping.inference = needs(Mode::inference, true);
    setup.packing->inference = needs(Mode::inference, false);
  }
  return setup;
}

Choice choice_of(const Job& job) {
  return {job.parallel, job.recompute};
}

RankSetup ranks_of_one_host(int ranks, std::int64_t threads, int cores) {
  const int each = threads > 0 ? static_cast<int>(threads) : std::max(1, cores / ranks);
  const std::size_t count = ranks;
  return {std::vector<int>(count, 0), std::vector<int>(count, each), {}};
}

int PlacedModel::local_ranks(int rank) const {
  const comm::Hosts& hosts = *part_of(rank).hosts;
  return hosts.ranks(hosts.host_of(number_in_part[rank])).size();
}

Placer::Cut& Placer::cut_of(const ParallelOptions& parallel) {
  if (parts_ && is_number_of_parts(parallel) && *parts_ == parallel.parts) return cut_;
  parts_.reset();
  const std::vector<double> equal(ranks_.count(), 1.0);
  const Placement placement =
      place_by_speed(setup_.graph, parallel, ranks_.speeds.empty() ? equal : ranks_.speeds, setup_.job.micro_batches);
  std::vector<GraphPart> parts;
  if (placement.ranks_of_part.size() > 1) parts = split(setup_.graph, placement.part_of_node);
  cut_ = {};
  const std::size_t ranks = ranks_.count();
  cut_.part_of_rank.resize(ranks);
  cut_.number_in_part.resize(ranks);
  cut_.workers.resize(ranks);
  for (std::size_t p = 0; p < placement.ranks_of_part.size(); ++p) {
    PlacedPart& part = cut_.parts.emplace_back();
    part.ranks = placement.ranks_of_part[p];
    part.hosts = std::make_shared<const comm::Hosts>(topology_of(ranks_.host_of, part.ranks));
    part.whole = &setup_.graph;
    if (!parts.empty()) part.shared = optim::shared_weights(parts, p);
    for (std::size_t n = 0; n < part.ranks.size(); ++n) {
      const std::size_t r = part.ranks[n];
      cut_.part_of_rank[r] = p;
      cut_.number_in_part[r] = n;
      cut_.workers[r] = workers_of(ranks_.threads[r], setup_.job.micro_batches, part.ranks.size());
    }
  }
  for (std::size_t p = 0; p < cut_.parts.size(); ++p) {
    PlacedPart& part = cut_.parts[p];
    if (!parts.empty()) part.part = std::make_shared<const GraphPart>(std::move(parts[p]));
    part.nodes.resize(setup_.graph.nodes.size());
    std::iota(part.nodes.begin(), part.nodes.end(), 0);
    if (part.part) part.nodes = part.part->nodes;
  }
  if (is_number_of_parts(parallel)) parts_ = parallel.parts;
  return cut_;
}

void Placer::deal(Cut& cut, bool interleaved) const {
  const int micro_batches = setup_.job.micro_batches;
  std::vector<DealtMicroBatches> all;
  std::vector<std::vector<int>> rank_of_micro_batch;  // by part
  for (const PlacedPart& part : cut.parts) {
    const std::vector<int> counts = !ranks_.micro_batches.empty() ? of_part(ranks_.micro_batches, part.ranks)
                                    : ranks_.speeds.empty()
                                        ? comm::equal_counts(micro_batches, part.ranks.size())
                                        : comm::counts_by_weights(micro_batches, of_part(ranks_.speeds, part.ranks));
    const std::vector<int> hosts = topology_of(ranks_.host_of, part.ranks).host_of;
    DealtMicroBatches& dealt = all.emplace_back(DealtMicroBatches{comm::place_micro_batches(counts, {}, hosts), {}});
    if (interleaved) dealt.assignment = comm::interleave_micro_batches(dealt.assignment, hosts);
    if (setup_.on_gpus) dealt.assignment.waves = comm::even_waves(dealt.assignment, of_part(cut.workers, part.ranks));
    dealt.sums = comm::sum_loads(micro_batches, dealt.assignment, *part.hosts);
    auto& rank_of = rank_of_micro_batch.emplace_back(static_cast<std::size_t>(micro_batches));
    for (std::size_t n = 0; n < part.ranks.size(); ++n) {
      for (const int micro_batch : dealt.assignment.micro_batches_of_rank[n]) rank_of[micro_batch] = part.ranks[n];
    }
  }
  const std::vector<int> order =
      cut.parts.size() > 1 ? balance::order_of_micro_batches(rank_of_micro_batch) : std::vector<int>();
  for (DealtMicroBatches& dealt : all) {
    dealt.assignment.order = order;
    cut.dealt[interleaved].push_back(std::make_shared<const DealtMicroBatches>(std::move(dealt)));
  }
}

void Placer::compile(Cut& cut, const Choice& choice) const {
  const ModelSetup::Needs& needs = setup_.needs(choice.sharding());
  Programs& all = cut.programs[{choice.recompute, divides_parameters(choice.sharding())}];
  for (const PlacedPart& part : cut.parts) {
    const PartBoundary* boundary = part.part ? &part.part->boundary : nullptr;
    PartPrograms programs{exec::program_of(part.graph(), Mode::training, needs_of_part(needs.training, part.nodes),
                                           {.in_place = true, .recompute = choice.recompute, .boundary = boundary}),
                          {}};
    if (!needs.inference.empty()) {
      programs.evaluation = exec::program_of(part.graph(), Mode::inference, needs_of_part(needs.inference, part.nodes),
                                             {.boundary = boundary});
    }
    all.push_back(std::make_shared<const PartPrograms>(std::move(programs)));
  }
}

namespace {

// Recomputing changes no gradient, but it might change their order.
bool same_slots(const Program& a, const Program& b) {
  return std::equal(a.slots.begin(), a.slots.end(), b.slots.begin(), b.slots.end(),
                    [](const Slot& of, const Slot& other) {
                      return of.kind == other.kind && of.target == other.target && of.elements == other.elements;
                    });
}

}  // namespace

void Placer::lay_out(Cut& cut, const Choice& choice) const {
  const bool divided = choice.sharding() != Sharding::none;
  const Programs& programs = cut.programs.at({choice.recompute, divides_parameters(choice.sharding())});
  for (const auto& [key, layouts] : cut.layouts) {
    const Programs& others = cut.programs.lower_bound({key.first, false})->second;
    const bool same = key.second == divided && std::equal(programs.begin(), programs.end(), others.begin(),
                                                          [](const auto& of, const auto& other) {
                                                            return same_slots(of->training, other->training);
                                                          });
    if (!same) continue;
    const std::vector<PartLayout> shared = layouts;
    cut.layouts.emplace(std::pair(choice.recompute, divided), shared);
    return;
  }
  std::vector<PartLayout>& layouts = cut.layouts[{choice.recompute, divided}];
  for (std::size_t p = 0; p < cut.parts.size(); ++p) {
    const PlacedPart& part = cut.parts[p];
    comm::GradientBuckets buckets = exec::gradient_buckets(
        programs[p]->training, setup_.job.bucket_bytes, setup_.job.micro_batches, divided && part.ranks.size() > 1,
        part.shared, stored_in_another_order(part.graph()), setup_.on_gpus ? static_cast<int>(part.ranks.size()) : 0);
    buckets.spread_owners = !setup_.on_gpus;
    // Slices of thousands of ranks take long, and most parts of a deep model are like the one before.
    if (p > 0 && *part.hosts == *cut.parts[p - 1].hosts && buckets == *layouts.back().buckets) {
      layouts.push_back(layouts.back());
      continue;
    }
    PartLayout& layout = layouts.emplace_back();
    layout.count = buckets.count();
    layout.elements = buckets.elements();
    layout.slices = std::make_shared<const std::vector<comm::SliceLoad>>(comm::slice_loads(buckets, *part.hosts));
    layout.buckets = std::make_shared<const comm::GradientBuckets>(std::move(buckets));
  }
}

PlacedModel Placer::place(const Choice& choice) {
  Cut& cut = cut_of(choice.parallel);
  PlacedModel placed;
  placed.choice = choice;
  placed.host_of = ranks_.host_of;
  placed.micro_batches = setup_.job.micro_batches;
  placed.streams_gradients = divides_gradients(choice.sharding());
  placed.parts = cut.parts;
  placed.part_of_rank = cut.part_of_rank;
  placed.number_in_part = cut.number_in_part;
  placed.workers = cut.workers;
  const bool divided = choice.sharding() != Sharding::none;
  if (!cut.dealt.contains(placed.streams_gradients)) deal(cut, placed.streams_gradients);
  const std::pair program(choice.recompute, divides_parameters(choice.sharding()));
  if (!cut.programs.contains(program)) compile(cut, choice);
  if (!cut.layouts.contains({choice.recompute, divided})) lay_out(cut, choice);
  std::vector<std::vector<int>> ranks_of_part;
  for (std::size_t p = 0; p < placed.parts.size(); ++p) {
    PlacedPart& part = placed.parts[p];
    part.dealt = cut.dealt[placed.streams_gradients][p];
    part.programs = cut.programs.at(program)[p];
    part.layout = cut.layouts[{choice.recompute, divided}][p];
    ranks_of_part.push_back(part.ranks);
  }
  placed.in_flight = choice.parallel.in_flight > 0 ? static_cast<int>(choice.parallel.in_flight)
                                                   : exec::default_in_flight(ranks_of_part);
  return placed;
}

PlacedModel place_model(const ModelSetup& setup, const RankSetup& ranks, const Choice& choice) {
  return Placer(setup, ranks).place(choice);
}

}  // namespace lockstep::plan
