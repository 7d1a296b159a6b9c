#include "plan/memory.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "comm/reduce/streamed_reduce_scatter.hpp"
#include "comm/reduce/tree_sums.hpp"
#include "core/round_up.hpp"
#include "exec/gather_layout.hpp"
#include "exec/micro_batch_runner.hpp"
#include "exec/parameters.hpp"
#include "exec/worker.hpp"
#include "graph/gradient_flow.hpp"
#include "graph/weight_order.hpp"
#include "optim/model_slices.hpp"
#include "optim/optimizers/adafactor.hpp"
#include "plan/checkpoint_memory.hpp"

namespace lockstep::plan {

namespace {

constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));

std::int64_t block_bytes(const Graph& graph, const std::vector<ValueId>& ids) {
  return static_cast<std::int64_t>(exec::TensorBlock::bytes_of(graph, ids));
}

std::vector<ValueId> trained(const Graph& graph) {
  std::vector<ValueId> ids;
  for (const ValueId id : graph.parameters) {
    if (!graph.at(id).frozen) ids.push_back(id);
  }
  return ids;
}

std::int64_t gradient_floats(const comm::GradientBuckets& buckets) {
  std::int64_t floats = 0;
  for (const auto& bucket : buckets.buckets) floats += whole_lines(bucket.elements);
  return floats;
}

/// This rank as owner of slices: what it owns and what it adds from other ranks, in floats over all buckets.
struct OwnSlices {
  std::int64_t floats = 0;    ///< in one sum
  std::int64_t read = 0;      ///< in partial sums in the memory of other ranks of its host
  std::int64_t received = 0;  ///< in other hosts' sums, and in sums that it adds as a leader for them
};

OwnSlices own_slices(const comm::ReducePlan& plan) {
  OwnSlices own;
  std::int64_t led = 0;
  for (const comm::BucketPlan& bucket : plan.buckets) {
    own.floats += whole_lines(bucket.own_size());
    for (const int number : bucket.led) led += whole_lines(bucket.at(number).size);
  }
  for (const comm::Partial& partial : plan.sums.partials) own.read += partial.rank == plan.rank ? 0 : own.floats;
  own.received = own.floats * std::ssize(plan.sums.others) + led * std::ssize(plan.sums.host_sums);
  return own;
}

/// The fraction that this rank keeps of what the ranks of a part divide; 1: nothing is divided.
double own_share(const comm::ReducePlan& plan, std::int64_t floats) {
  return floats == 0 ? 1 : static_cast<double>(own_slices(plan).floats) / static_cast<double>(floats);
}

std::int64_t part_of(std::int64_t bytes, double share) {
  return static_cast<std::int64_t>(std::llround(static_cast<double>(bytes) * share));
}

class Counter {
 public:
  Counter(const PlacedModel& placed, const MemorySetup& setup, int rank)
      : placed_(placed), setup_(setup), part_(placed.part_of(rank)), rank_(rank) {}

  RankMemory count() {
    const Graph& graph = part_.graph();
    memory_.parameters = parameters();
    // If updates are divided, parameters are in memory shared by the host.
    if (placed_.choice.sharding() != Sharding::none) add_shared(memory_.parameters);
    memory_.statistics = block_bytes(graph, graph.states);
    count_gradients();
    memory_.optimizer += steps_of_matrices();
    count_programs();
    count_data();
    memory_.process = setup_.process;
    if (!setup_.shares) memory_.of_others = 0;
    return memory_;
  }

 private:
  [[nodiscard]] bool exact() const { return setup_.model.job.exact != Exactness::never; }
  [[nodiscard]] int workers() const { return placed_.workers[static_cast<std::size_t>(rank_)]; }

  /// Notes memory that the host has once: everything except this rank's share counts as other ranks'.
  void add_shared(std::int64_t bytes) { memory_.of_others += bytes - bytes / local_ranks(); }

  /// Number of ranks of this host that have the part.
  [[nodiscard]] int local_ranks() const {
    const auto own_host = placed_.host_of[static_cast<std::size_t>(rank_)];
    return static_cast<int>(std::count_if(part_.ranks.begin(), part_.ranks.end(), [&](int rank) {
      return placed_.host_of[static_cast<std::size_t>(rank)] == own_host;
    }));
  }

  /// All of them; or, if hosts divide them, or ranks on GPUs, those of this host's owners plus the units of others that
  /// are kept at a time.
  [[nodiscard]] std::int64_t parameters() const {
    const std::int64_t all = block_bytes(part_.graph(), part_.graph().parameters);
    const bool on_gpus = setup_.model.on_gpus;
    const auto ranks = std::ssize(part_.ranks);
    if (!divides_parameters(placed_.choice.sharding()) || (on_gpus ? 1 : local_ranks()) == ranks) return all;
    std::int64_t unit = setup_.model.job.bucket_bytes;
    for (const ValueId id : part_.graph().parameters) {
      unit = std::max(unit, static_cast<std::int64_t>(part_.graph().at(id).spec.bytes()));
    }
    // Workers of a GPU share what is gathered.
    if (on_gpus) return all / ranks + std::min(all, static_cast<std::int64_t>(1 + exec::GatherLayout::kAhead) * unit);
    const double share = static_cast<double>(local_ranks()) / static_cast<double>(ranks);
    return std::min(all, part_of(all, share) + optim::ModelSlices::units_kept(workers(), local_ranks()) * unit);
  }

  void count_gradients() {
    const std::int64_t floats = gradient_floats(part_.buckets), sum = floats * kFloat;
    // TensorBoard's histograms of gradients are made from the sums when they are shown.
    const auto& shown = setup_.model.job.telemetry.tensorboard;
    const std::int64_t updated =
        shown.enabled && shown.histograms.amount > 0 ? block_bytes(part_.graph(), trained(part_.graph())) : 0;
    const auto [states, undivided] = states_in_bytes();
    memory_.optimizer = undivided;
    const std::int64_t pool = pool_bytes(part_.buckets, placed_.micro_batches_of(rank_), exact(), workers());
    if (part_.ranks.size() == 1 || !exact()) {  // there is only one root, in the sum's own memory
      memory_.gradients = sum + pool + updated;
      memory_.optimizer += states;
      return;
    }
    const comm::ReducePlan plan = placed_.reduce_plan(rank_);
    const OwnSlices own = own_slices(plan);
    const Sharding sharding = placed_.choice.sharding();
    const double share = sharding == Sharding::none ? 1 : own_share(plan, floats);
    if (placed_.streams_gradients) {
      memory_.gradients = streamed() + part_of(sum + updated, share);
      memory_.optimizer += part_of(states, share);
      return;
    }
    // The sums, and partial sums of other ranks. Slices are divided evenly: others read as much from this rank as it
    // reads from them.
    memory_.of_others += own.read * kFloat;
    if (sharding == Sharding::none) add_shared(sum);
    const auto partials = static_cast<std::int64_t>(plan.sums.roots.size()) * sum;
    // A rank that updates all parameters reads all sums; else only its own slices of them.
    memory_.gradients = partials + pool + (own.read + own.received) * kFloat + part_of(sum + updated, share);
    memory_.optimizer += part_of(states, share);
  }

  /// Of the optimizer's states: those in their parameter's shape, which ranks may divide, and the others.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> states_in_bytes() const {
    std::int64_t divided = 0, undivided = 0;
    for (const optim::StateSpec& state : setup_.states) {
      for (const ValueId id : part_.graph().parameters) {
        const Shape& parameter = part_.graph().at(id).spec.shape;
        const Shape shape = state.shape(parameter);
        (shape == parameter ? divided : undivided) += whole_lines(elements(shape)) * kFloat;
      }
    }
    return {divided, undivided};
  }

  /// All of them, whatever is divided, and the iteration of those that are made at a time (CpuUpdater, GpuUpdater).
  [[nodiscard]] std::int64_t steps_of_matrices() const {
    if (setup_.optimizer == nullptr) return 0;
    if (setup_.model.on_gpus && setup_.optimizer->state_shape) return steps_of_adafactor_on_gpus();
    std::int64_t floats = 0, scratch = 0;
    for (const ValueId id : trained(part_.graph())) {
      const Value& value = part_.graph().at(id);
      if (!optim::makes_whole_step(*setup_.optimizer, value)) continue;
      const std::int64_t rows = value.spec.shape.front(), columns = value.spec.elements() / rows;
      floats += rows * columns;
      const auto& needed = setup_.optimizer->matrix_scratch;
      if (needed) scratch = std::max(scratch, needed(rows, columns));
    }
    if (setup_.model.on_gpus) return (floats + scratch) * kFloat;
    // Before the first step is made, what ranks gather is in memory twice, and the own part once more.
    const auto ranks = std::ssize(part_.ranks);
    const bool gathers = placed_.choice.sharding() != Sharding::none && ranks > 1;
    return (floats + std::max(gathers ? floats + floats / ranks : 0, scratch * workers())) * kFloat;
  }

  /// The sums of tiles, and of the gradient what is copied.
  [[nodiscard]] std::int64_t steps_of_adafactor_on_gpus() const {
    const bool divided = placed_.choice.sharding() != Sharding::none;
    std::int64_t bytes = 0;
    for (const ValueId id : trained(part_.graph())) {
      const Value& value = part_.graph().at(id);
      if (!optim::makes_whole_step(*setup_.optimizer, value)) continue;
      const std::int64_t rows = value.spec.shape.front(), columns = value.spec.elements() / rows;
      bytes += optim::sums_of_tiles(rows, columns) * static_cast<std::int64_t>(sizeof(double));
      if (divided || filter_sizes(value.spec.shape).orders_differ()) bytes += rows * columns * kFloat;
    }
    return bytes;
  }

  /// Gradients on the way to the owners of their slices, and their sums so far (comm::StreamedReduceScatter).
  [[nodiscard]] std::int64_t streamed() {
    std::vector<int> workers_of_ranks;
    for (const int rank : part_.ranks) workers_of_ranks.push_back(placed_.workers[static_cast<std::size_t>(rank)]);
    const auto [rings, sums] = comm::StreamedReduceScatter::memory(
        part_.buckets, part_.assignment, placed_.hosts_of(part_), placed_.number_in_part(rank_), workers_of_ranks,
        exec::max_open_elements(part_.program, part_.buckets));
    add_shared(rings);
    // Sums are not in use yet while micro-batches are tried at the start.
    const std::int64_t tried = workers() * exec::scratch_elements(part_.program, part_.buckets) * kFloat;
    return rings + std::max(sums, tried);
  }

  void count_programs() {
    const std::int64_t arena = round_up<std::int64_t>(part_.program.arena_bytes, 64);
    const std::int64_t workers = this->workers();
    const auto own = std::ssize(placed_.micro_batches_of(rank_));
    std::int64_t flights = 1;
    if (part_.part) {
      // One more, so that the next micro-batch's values can be received meanwhile (exec/part_worker).
      flights = std::min<std::int64_t>(placed_.in_flight + 1,
                                       std::max<std::int64_t>(1, divide_up<std::int64_t>(own, workers)));
    }
    const std::int64_t used = std::min<std::int64_t>(workers, std::max<std::int64_t>(own, 1));
    // Every second micro-batch is added to its sibling, so with an even number of flights half of them never add.
    const std::int64_t adding = own < 2 ? 0 : flights % 2 == 0 ? flights / 2 : flights;
    memory_.activations = (arena * flights + scratch() * adding) * used;
    const bool keeps = !divides_parameters(placed_.choice.sharding());
    memory_.kernels = (keeps ? kept(setup_.model.training) : max_packed()) * used;
    if (part_.part) memory_.messages = crossing() * flights * used;
    if (!part_.evaluation) return;
    const auto evaluated = static_cast<std::int64_t>(exec::MicroBatchRunner::arena_bytes(*part_.evaluation));
    memory_.activations += evaluated * flights * used;
    if (keeps) memory_.kernels += kept(setup_.model.inference) * used;
  }

  /// Largest total size of one instruction's gradients that its kernel cannot add to a sibling's itself. The arena has
  /// room for all of its gradients, but the pages for the others are never touched.
  [[nodiscard]] std::int64_t scratch() const {
    std::int64_t most = 0;
    for (const Instruction& instruction : part_.program.instructions) {
      std::int64_t floats = 0;
      const auto add = [&](const Location& location) {
        if (location.space != Space::slot) return;
        floats += whole_lines(part_.program.slots[static_cast<std::size_t>(location.index)].elements);
      };
      for (const Location& location : instruction.statistics) add(location);
      for (std::size_t i = 0; i < instruction.parameter_gradients.size(); ++i) {
        const auto node = static_cast<std::size_t>(part_.nodes[static_cast<std::size_t>(instruction.node)]);
        const bool adds = i < 64 && (setup_.model.training[node].adds >> i & 1U) != 0;
        if (!adds) add(instruction.parameter_gradients[i]);
      }
      most = std::max(most, floats);
    }
    return most * kFloat;
  }

  [[nodiscard]] std::int64_t kept(const std::vector<exec::KernelNeeds>& needs) const {
    std::size_t bytes = 0;
    for (const std::int32_t node : part_.nodes) bytes += needs[static_cast<std::size_t>(node)].kept;
    return static_cast<std::int64_t>(bytes);
  }

  /// If weights are packed for a single call, they are in their kernel's workspace, so only the largest counts.
  [[nodiscard]] std::int64_t max_packed() const {
    std::size_t most = 0;
    for (const std::int32_t node : part_.nodes) {
      most = std::max(most, setup_.model.training[static_cast<std::size_t>(node)].kept);
    }
    return static_cast<std::int64_t>(most);
  }

  /// Bytes that a micro-batch receives from other parts.
  [[nodiscard]] std::int64_t crossing() const {
    std::size_t bytes = 0;
    for (const auto& received : part_.part->boundary.received) bytes += part_.graph().at(received.value).spec.bytes();
    for (const auto& arrival : part_.part->boundary.arrivals) bytes += part_.graph().at(arrival.value).spec.bytes();
    return static_cast<std::int64_t>(bytes);
  }

  void count_data() {
    if (part_.graph().inputs.empty()) return;
    const DataNeeds& data = setup_.data;
    const std::int64_t ahead = data.depth + workers();
    const bool evaluates = part_.evaluation.has_value();
    memory_.data = data.micro_batch * ahead * (evaluates ? 2 : 1);
    if (data.cached_sample == 0) return;
    const double share = static_cast<double>(placed_.micro_batches_of(rank_).size()) / placed_.micro_batches;
    // The set is shuffled: each epoch, the rank reads another part of it.
    const auto whole = static_cast<std::int64_t>(data.epochs);
    const double seen =
        1 - std::pow(1 - share, static_cast<double>(whole)) * (1 - share * (data.epochs - static_cast<double>(whole)));
    memory_.data += std::min(data.cache, cache_bytes(data.samples, seen));
    if (evaluates) memory_.data += std::min(data.cache / 4, cache_bytes(data.validation_samples, share));
  }

  [[nodiscard]] std::int64_t cache_bytes(std::int64_t samples, double seen) const {
    constexpr std::int64_t kTable = 8, kHeader = 16;  // per sample; per block of memory
    return samples * kTable + part_of(samples * (setup_.data.cached_sample + kHeader), seen);
  }

  const PlacedModel& placed_;
  const MemorySetup& setup_;
  const PlacedPart& part_;
  int rank_;
  RankMemory memory_;
};

// At the end, rank 0 hashes the whole model, holding one weight of other parts at a time.
void add_hash(const PlacedModel& placed, std::vector<RankMemory>& ranks) {
  std::int64_t most = 0;
  for (const PlacedPart& part : placed.parts) {
    if (placed.part_of_rank.front() == placed.part_of_rank[static_cast<std::size_t>(part.ranks.front())]) continue;
    for (const ValueId id : part.graph().parameters) {
      most = std::max(most, static_cast<std::int64_t>(part.graph().at(id).spec.bytes()));
    }
  }
  ranks.front().messages += most;
}

}  // namespace

std::int64_t RankMemory::total() const {
  std::int64_t sum = 0;
  for (const auto& [name, bytes] : kinds()) sum += bytes;
  return sum;
}

std::vector<std::pair<std::string, std::int64_t>> RankMemory::kinds() const {
  return {{"parameters", parameters},   {"gradients", gradients}, {"optimizer", optimizer}, {"statistics", statistics},
          {"activations", activations}, {"kernels", kernels},     {"messages", messages},   {"data", data},
          {"checkpoint", checkpoint},   {"process", process}};
}

std::int64_t pool_bytes(const comm::GradientBuckets& buckets, const std::vector<int>& micro_batches, bool exact,
                        int workers) {
  const comm::Tree tree(buckets.micro_batches);
  std::vector<int> order = micro_batches;
  comm::MergePlan plan = comm::chain_plan(buckets.micro_batches, micro_batches);
  if (exact) {
    const std::vector<comm::TreeNode> roots = tree.maximal_subtrees(micro_batches);
    plan = comm::tree_plan(tree, roots);
    order.clear();
    for (const comm::TreeNode root : roots) {  // largest subtree first, the order of computation
      for (int micro_batch = tree.first(root); micro_batch < tree.end(root); ++micro_batch)
        order.push_back(micro_batch);
    }
  }
  std::vector<std::vector<int>> waves;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i % static_cast<std::size_t>(workers) == 0) waves.emplace_back();
    waves.back().push_back(order[i]);
  }
  return comm::AccumulationBuffers::pool_elements(buckets, std::move(plan), waves) * kFloat;
}

MemorySetup memory_setup(const ModelSetup& model, const OptimizerRegistry& optimizers, const DataNeeds& data,
                         std::int64_t process) {
  return {.model = model,
          .states = optim::states_of(model.job.optimizer, optimizers),
          .data = data,
          .process = process,
          .shares = !model.on_gpus,
          .optimizer = &optimizers.at(model.job.optimizer.kind)};
}

std::vector<RankMemory> memory_of(const PlacedModel& placed, const MemorySetup& setup) {
  std::vector<RankMemory> ranks;
  for (int rank = 0; rank < placed.ranks(); ++rank) ranks.push_back(Counter(placed, setup, rank).count());
  add_hash(placed, ranks);
  add_checkpoint_memory(placed, setup, ranks);
  return ranks;
}

}  // namespace lockstep::plan
