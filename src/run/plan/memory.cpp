#include "run/plan/memory.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/reduce/all_reduce_cpu.hpp"
#include "comm/reduce/tree_sums.hpp"
#include "core/round_up.hpp"
#include "graph/gradient_flow.hpp"
#include "run/checkpoint/layout.hpp"
#include "run/plan/gpu_memory.hpp"
#include "step/exec/micro_batch_gradients.hpp"
#include "step/exec/micro_batch_runner.hpp"
#include "step/exec/parameters.hpp"
#include "step/optim/matrix_makers.hpp"
#include "step/optim/model_slices.hpp"

namespace lockstep::plan {

namespace {

// What a checkpoint takes of each rank's memory: the copy of the files that the rank writes.

/// By name, of parameters that several ranks have and divide: who keeps which elements of an optimizer's state. If
/// several parts share a weight, the first part saves its states.
std::map<std::string, std::vector<checkpoint::Holding>> divided_states(const PlacedModel& placed,
                                                                       const MemorySetup& setup) {
  std::map<std::string, std::vector<checkpoint::Holding>> holdings;
  if (placed.choice.sharding() == Sharding::none || setup.model.job.exact == Exactness::never) return holdings;
  for (const PlacedPart& part : placed.parts) {
    if (part.ranks.size() == 1) continue;
    const Graph& graph = part.graph();
    const auto owned = optim::ModelSlices::owned_by(part.ranks.size(), graph, part.program(), *part.layout.buckets);
    for (std::size_t p = 0; p < owned.size(); ++p) {
      auto& list = holdings[graph.at(graph.parameters[p]).name];
      if (!list.empty()) continue;
      for (const auto& [extent, owner] : owned[p]) {
        list.push_back({extent, {part.ranks[owner]}});
      }
    }
  }
  return holdings;
}

// Tensors by name, with the ranks that have them, which determine a checkpoint's files.
std::vector<checkpoint::TensorSource> tensors_of(const PlacedModel& placed, const MemorySetup& setup) {
  const Graph& whole = setup.model.graph;
  const auto states = divided_states(placed, setup);
  std::vector<checkpoint::TensorSource> tensors;
  const auto ranks_of = [&](const std::string& name) {
    std::vector<int> ranks;
    for (const PlacedPart& part : placed.parts) {
      const Graph& graph = part.graph();
      const bool has = std::any_of(graph.values.begin(), graph.values.end(), [&](const Value& value) {
        return value.role != Role::activation && value.name == name;
      });
      if (has) ranks.insert(ranks.end(), part.ranks.begin(), part.ranks.end());
    }
    return ranks;
  };
  const auto add = [&](const std::vector<ValueId>& ids, const optim::OptimizerState* state) {
    for (const ValueId id : ids) {
      const Value& value = whole.at(id);
      const Shape shape = state != nullptr ? state->shape(value.spec.shape) : value.spec.shape;
      if (state != nullptr && state->is_missing(shape)) continue;
      checkpoint::TensorSource tensor{
          state != nullptr ? value.name + ":" + state->name : value.name, shape, {}, state != nullptr};
      const auto found = states.find(value.name);
      if (state != nullptr && shape == value.spec.shape && found != states.end()) {
        tensor.holdings = found->second;
      } else if (placed.is_cut()) {
        tensor.holdings = {{{0, elements(shape)}, ranks_of(value.name)}};
      }
      tensors.push_back(std::move(tensor));
    }
  };
  add(whole.parameters, nullptr);
  add(whole.states, nullptr);
  for (const optim::OptimizerState& state : setup.states) add(whole.parameters, &state);
  return tensors;
}

/// Adds to `ranks` what each writes, by the layout of training (run/checkpoint/layout.hpp).
void add_checkpoint_memory(const PlacedModel& placed, const MemorySetup& setup, std::vector<RankMemory>& ranks) {
  const JobFile& job = setup.model.job;
  if (job.checkpoint.never) return;
  std::vector<std::string> hosts;
  for (const int host : placed.host_of) hosts.push_back(std::to_string(host));
  for (const auto& file :
       checkpoint::plan_parts(tensors_of(placed, setup), job.checkpoint.part_bytes, comm::make_topology(hosts))) {
    ranks[file.rank].checkpoint += static_cast<std::int64_t>(file.bytes);
  }
}

constexpr std::int64_t kFloat = sizeof(float);

std::int64_t block_bytes(const Graph& graph, const std::vector<ValueId>& ids) {
  return exec::TensorBlock::bytes_of(graph, ids);
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

std::int64_t part_of(std::int64_t bytes, double share) {
  return std::llround(bytes * share);
}

/// What the ranks of one part have, on CPUs.
class PartCounter {
 public:
  PartCounter(const PlacedModel& placed, const MemorySetup& setup, const PlacedPart& part)
      : placed_(placed),
        setup_(setup),
        part_(part),
        parameters_(block_bytes(part.graph(), part.graph().parameters)),
        statistics_(block_bytes(part.graph(), part.graph().states)),
        floats_(gradient_floats(*part.layout.buckets)),
        needs_(setup.model.needs(placed.choice.sharding())),
        scratch_(scratch()),
        kept_(kept(needs_.training)) {
    // TensorBoard's histograms of gradients are made from the sums when they are shown.
    const auto& shown = setup.model.job.telemetry.tensorboard;
    if (shown.enabled && shown.histograms.amount > 0) shown_ = block_bytes(part.graph(), trained(part.graph()));
    count_states();
    if (setup.optimizer != nullptr && setup.optimizer->matrix_step) {
      makers_.emplace(part.graph(), *setup.optimizer, optim::settings_of(*setup.optimizer, setup.model.job.optimizer),
                      static_cast<int>(part.ranks.size()));
    }
    if (placed.streams_gradients) {
      ring_ = comm::GradientRings::elements(*part.layout.buckets,
                                            exec::max_open_elements(part.program(), *part.layout.buckets));
      tried_ = exec::scratch_elements(part.program(), *part.layout.buckets);
    }
    if (divides_parameters(placed.choice.sharding()) && part.hosts->count() > 1) {
      foreign_ = optim::ModelSlices::foreign_bytes(*part.hosts, part.graph(), part.program(), *part.layout.buckets,
                                                   setup.model.job.bucket_bytes);
      for (auto& units : foreign_) std::sort(units.begin(), units.end(), std::greater());
    }
    if (part.programs->evaluation) {
      evaluated_ = exec::MicroBatchRunner::arena_bytes(*part.programs->evaluation);
      kept_to_evaluate_ = kept(needs_.inference);
    }
  }

  RankMemory count(int rank) {
    rank_ = rank;
    memory_ = {};
    memory_.parameters = parameters();
    // If updates are divided, parameters are in memory shared by the host.
    if (placed_.choice.sharding() != Sharding::none) add_shared(memory_.parameters);
    memory_.statistics = statistics_;
    count_gradients();
    count_programs();
    count_data();
    memory_.process = setup_.process;
    if (!setup_.shares) memory_.of_others = 0;
    return memory_;
  }

 private:
  bool exact() const { return setup_.model.job.exact != Exactness::never; }
  int workers() const { return placed_.workers[rank_]; }
  int local_ranks() const { return placed_.local_ranks(rank_); }

  /// Notes memory that the host has once: everything except this rank's share counts as other ranks'.
  void add_shared(std::int64_t bytes) { memory_.of_others += bytes - bytes / local_ranks(); }

  /// All of them; or, if hosts divide them, those of this host's owners plus the units of others that are kept at a
  /// time.
  std::int64_t parameters() const {
    if (foreign_.empty()) return parameters_;
    const int number = placed_.number_in_part[rank_];
    const auto& units = foreign_[part_.hosts->host_of(number)];  // the largest first
    const std::ptrdiff_t kept = optim::ModelSlices::units_kept(workers(), local_ranks());
    return parameters_ -
           std::accumulate(units.begin() + std::min(kept, std::ssize(units)), units.end(), std::int64_t{0});
  }

  void count_gradients() {
    const std::int64_t sum = floats_ * kFloat;
    memory_.optimizer = undivided_states_;
    if (part_.ranks.size() == 1 || !exact()) {  // there is only one root, in the sum's own memory
      memory_.gradients = sum + merging() * sum + shown_;
      memory_.optimizer += divided_states_ + steps_of_matrices(1);
      return;
    }
    const comm::SliceLoad& slices = placed_.slices_of(rank_);
    // The fraction that this rank keeps of what the ranks of a part divide; 1: nothing is divided.
    const double share = placed_.choice.sharding() == Sharding::none || floats_ == 0
                             ? 1
                             : static_cast<double>(slices.own_floats()) / floats_;
    memory_.optimizer += part_of(divided_states_, share) + steps_of_matrices(share);
    const HostStreams& streams = host_streams();
    const comm::CpuAllReduce::Bytes bytes = comm::CpuAllReduce::bytes({.buckets = *part_.layout.buckets,
                                                                       .sums = placed_.sums_of(rank_),
                                                                       .slices = slices,
                                                                       .hosts = part_.hosts->count(),
                                                                       .streamed = placed_.streams_gradients,
                                                                       .merging = merging(),
                                                                       .streaming = streams.waiting,
                                                                       .host_rings = ring_ * streams.workers});
    memory_.of_others += bytes.read;
    add_shared(bytes.of_host);
    memory_.waiting = bytes.waiting;
    // Sums are not in use yet while micro-batches are tried at the start.
    memory_.gradients = std::max(bytes.own + bytes.waiting, workers() * tried_ * kFloat) + bytes.read + bytes.of_host +
                        part_of(shown_, share);
  }

  /// Pool buffers of each bucket. Ranks with subtrees of the same sizes wait for as many siblings.
  [[nodiscard]] int merging() {
    const auto [known, is_new] = merging_.try_emplace({placed_.sums_of(rank_).roots, workers()}, 0);
    if (is_new || part_.part) {  // ranks of a part are fed in different orders
      const std::array number = {placed_.number_in_part[rank_]};
      const std::vector<int> own = comm::expected_order(part_.dealt->assignment, number);
      const int all = part_.layout.buckets->micro_batches;
      const comm::Tree tree(all);
      known->second = comm::AccumulationBuffers::most_waiting(
          exact() ? comm::tree_plan(tree, tree.maximal_subtrees(own)) : comm::chain_plan(all, own),
          comm::waves_of(own, workers()));
    }
    return known->second;
  }

  /// Of the optimizer's states: those in their parameter's shape, which ranks may divide, and the others.
  void count_states() {
    for (const optim::OptimizerState& state : setup_.states) {
      for (const ValueId id : part_.graph().parameters) {
        const Shape& parameter = part_.graph().at(id).spec.shape;
        const Shape shape = state.shape(parameter);
        (shape == parameter ? divided_states_ : undivided_states_) += whole_lines(elements(shape)) * kFloat;
      }
    }
  }

  /// Directions and steps of matrices that this rank keeps, and the iteration of those that it makes at a time.
  std::int64_t steps_of_matrices(double share) const {
    if (!makers_) return 0;
    return makers_->bytes(placed_.number_in_part[rank_], share, workers());
  }

  /// What the ranks of a host have in common if gradients are streamed.
  struct HostStreams {
    int workers = 0, waiting = 0;
  };
  const HostStreams& host_streams() {
    const int number = placed_.number_in_part[rank_], host = part_.hosts->host_of(number);
    const auto [known, is_new] = host_streams_.try_emplace(host);
    if (is_new && placed_.streams_gradients) {
      HostStreams& streams = known->second;
      for (const int local : part_.hosts->ranks(host)) streams.workers += placed_.workers[part_.ranks[local]];
      streams.waiting =
          comm::StreamedSums::most_waiting(part_.dealt->assignment, *part_.hosts, number, streams.workers);
    }
    return known->second;
  }

  void count_programs() {
    const std::int64_t arena = round_up<std::int64_t>(part_.program().arena_bytes, 64);
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
    memory_.activations = (arena * flights + scratch_ * adding) * used;
    memory_.kernels = kept_ * used;
    if (part_.part) memory_.messages = bytes_of_messages(part_) * flights * used;
    if (!part_.programs->evaluation) return;
    memory_.activations += evaluated_ * flights * used;
    memory_.kernels += kept_to_evaluate_ * used;
  }

  /// Largest total size of one instruction's gradients that its kernel cannot add to a sibling's itself. The arena has
  /// room for all of its gradients, but the pages for the others are never touched.
  std::int64_t scratch() const {
    std::int64_t most = 0;
    for (const Instruction& instruction : part_.program().instructions) {
      std::int64_t floats = 0;
      const auto add = [&](const Location& location) {
        if (location.space != Space::slot) return;
        floats += whole_lines(part_.program().slots[location.index].elements);
      };
      for (const Location& location : instruction.statistics) add(location);
      for (std::size_t i = 0; i < instruction.parameter_gradients.size(); ++i) {
        const std::size_t node = part_.nodes[instruction.node];
        const bool adds = i < 64 && (needs_.training[node].adds >> i & 1U) != 0;
        if (!adds) add(instruction.parameter_gradients[i]);
      }
      most = std::max(most, floats);
    }
    return most * kFloat;
  }

  std::int64_t kept(const std::vector<exec::KernelNeeds>& needs) const {
    std::size_t bytes = 0;
    for (const std::int32_t node : part_.nodes) bytes += needs[node].kept;
    return bytes;
  }

  void count_data() {
    if (part_.graph().inputs.empty()) return;
    const DataNeeds& data = setup_.data;
    const std::int64_t ahead = data.depth + workers();
    const bool evaluates = part_.programs->evaluation.has_value();
    memory_.data = data.micro_batch * ahead * (evaluates ? 2 : 1);
    if (data.cached_sample == 0) return;
    const double share = static_cast<double>(placed_.micro_batches_of(rank_).size()) / placed_.micro_batches;
    // The set is shuffled: each epoch, the rank reads another part of it.
    const std::int64_t whole = data.epochs;
    const double seen = 1 - std::pow(1 - share, static_cast<double>(whole)) * (1 - share * (data.epochs - whole));
    memory_.data += std::min(data.cache, cache_bytes(data.samples, seen));
    if (evaluates) memory_.data += std::min(data.cache / 4, cache_bytes(data.validation_samples, share));
  }

  std::int64_t cache_bytes(std::int64_t samples, double seen) const {
    constexpr std::int64_t kTable = 8, kHeader = 16;  // per sample; per block of memory
    return samples * kTable + part_of(samples * (setup_.data.cached_sample + kHeader), seen);
  }

  const PlacedModel& placed_;
  const MemorySetup& setup_;
  const PlacedPart& part_;
  // Of every rank of the part, in bytes.
  const std::int64_t parameters_, statistics_;
  std::int64_t shown_ = 0, divided_states_ = 0, undivided_states_ = 0, evaluated_ = 0, kept_to_evaluate_ = 0;
  const std::int64_t floats_;
  std::int64_t ring_ = 0, tried_ = 0;  // in floats, as is floats_
  const ModelSetup::Needs& needs_;
  const std::int64_t scratch_, kept_;
  std::optional<optim::MatrixMakers> makers_;                // if the optimizer makes steps of whole matrices
  std::vector<std::vector<std::int64_t>> foreign_;           // by host: bytes of each unit that are other hosts'
  std::map<int, HostStreams> host_streams_;                  // by host
  std::map<std::pair<std::vector<int>, int>, int> merging_;  // by micro-batches of partial sums, and workers
  // Of the rank that is being counted.
  int rank_ = 0;
  RankMemory memory_;
};

// At the end, rank 0 hashes the whole model, holding one weight of other parts at a time.
void add_hash(const PlacedModel& placed, std::vector<RankMemory>& ranks) {
  std::int64_t most = 0;
  for (const PlacedPart& part : placed.parts) {
    if (placed.part_of_rank.front() == placed.part_of_rank[part.ranks.front()]) continue;
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

MemorySetup memory_setup(const ModelSetup& model, const OptimizerRegistry& optimizers, const DataNeeds& data,
                         std::int64_t process) {
  return {.model = model,
          .states = optim::states_of(model.job.optimizer, optimizers),
          .data = data,
          .process = process,
          .shares = !model.on_gpus,
          .optimizer = &optimizers.at(model.job.optimizer.kind)};
}

std::int64_t bytes_of_messages(const PlacedPart& part) {
  std::size_t bytes = 0;
  if (!part.part) return 0;
  for (const auto& received : part.part->boundary.received) bytes += part.graph().at(received.value).spec.bytes();
  for (const auto& arrival : part.part->boundary.arrivals) bytes += part.graph().at(arrival.value).spec.bytes();
  return bytes;
}

std::vector<RankMemory> memory_of(const PlacedModel& placed, const MemorySetup& setup) {
  if (setup.model.on_gpus) return gpu_memory_of(placed, setup);
  std::vector<RankMemory> ranks(placed.ranks());
  for (const PlacedPart& part : placed.parts) {
    PartCounter counter(placed, setup, part);
    for (const int rank : part.ranks) ranks[rank] = counter.count(rank);
  }
  add_hash(placed, ranks);
  add_checkpoint_memory(placed, setup, ranks);
  return ranks;
}

}  // namespace lockstep::plan
