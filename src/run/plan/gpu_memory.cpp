#include "run/plan/gpu_memory.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "comm/reduce/all_reduce_gpu.hpp"
#include "graph/precision.hpp"
#include "step/exec/gather_layout.hpp"
#include "step/exec/gpu_gathers.hpp"
#include "step/exec/gpu_micro_batch_io.hpp"
#include "step/exec/micro_batch_gradients.hpp"
#include "step/exec/micro_batch_runner.hpp"
#include "step/optim/gpu_update_memory.hpp"
#include "step/optim/matrix_makers.hpp"
#include "step/optim/parameter_units.hpp"

namespace lockstep::plan {

namespace {

exec::KeptElements whole(const Graph& graph, const std::vector<ValueId>& ids) {
  exec::KeptElements kept;
  for (const ValueId id : ids) kept.push_back({{0, graph.at(id).spec.elements()}});
  return kept;
}

/// Where the elements lie makes no difference to how many bytes they take, except for gaps.
exec::KeptElements shares(const Graph& graph, double share) {
  exec::KeptElements kept;
  for (const ValueId id : graph.parameters) {
    const double all = graph.at(id).spec.elements();
    kept.push_back({{0, static_cast<std::int64_t>(std::llround(all * share))}});
  }
  return kept;
}

class GpuCounter {
 public:
  GpuCounter(const PlacedModel& placed, const MemorySetup& setup, const PlacedPart& part)
      : placed_(placed), setup_(setup), part_(part), ranks_(part.ranks.size()) {
    count_model();
    const std::size_t trains = exec::MicroBatchRunner::arena_bytes(part.program());
    const auto& evaluation = part.programs->evaluation;
    const std::size_t evaluates = evaluation ? exec::MicroBatchRunner::arena_bytes(*evaluation) : 0;
    // A worker of a whole model uses one arena for both; parts have micro-batches for evaluations beside those in
    // training.
    arenas_ = part.part ? trains + (evaluation ? trains : 0) : std::max(trains, evaluates);
    inputs_ = exec::GpuInputs::bytes(part.graph()) * (evaluation ? 2 : 1);
    messages_ = static_cast<std::size_t>(bytes_of_messages(part)) * (evaluation ? 2 : 1);
  }

  RankMemory count(int rank) {
    RankMemory memory = count_alike(rank);
    if (makers_) memory.optimizer += signed_bytes(makers_->gpu_bytes(number(rank), share_));
    return memory;
  }

 private:
  static std::int64_t signed_bytes(std::size_t bytes) { return bytes; }
  int number(int rank) const { return placed_.number_in_part[rank]; }

  /// Ranks with as many micro-batches and workers need the same.
  RankMemory count_alike(int rank) {
    const int micro_batches = placed_.micro_batches_of(rank).size();
    const int workers = placed_.workers[rank];
    const auto [known, is_new] = known_.try_emplace({micro_batches, workers}, model_);
    if (!is_new) return known->second;
    RankMemory& memory = known->second;
    const int held = workers * (part_.part ? placed_.in_flight + 1 : 1);
    const comm::ReducerOptions options{
        .streamed = placed_.streams_gradients,
        .workers = workers,
        .open_elements = exec::max_open_elements(part_.program(), *part_.layout.buckets)};
    memory.gradients += signed_bytes(comm::GpuAllReduce::bytes(
        {*part_.layout.buckets, part_.dealt->assignment, *part_.hosts, largest_like(micro_batches, workers), options}));
    memory.activations = held * signed_bytes(arenas_);
    memory.data = held * signed_bytes(inputs_);
    memory.messages = part_.part ? held * signed_bytes(messages_) : 0;
    memory.process = setup_.process;
    return memory;
  }

  /// Of the ranks with so many micro-batches and workers, the number in the part of the one with the largest slices.
  int largest_like(int micro_batches, int workers) const {
    int largest = -1;
    const auto floats = [&](int number) {
      const comm::SliceLoad& slices = (*part_.layout.slices)[number];
      return slices.scattered.own_floats + slices.scattered.led_floats;
    };
    for (const int rank : part_.ranks) {
      const int own = number(rank);
      if (static_cast<int>(placed_.micro_batches_of(rank).size()) != micro_batches ||
          placed_.workers[rank] != workers) {
        continue;
      }
      if (largest < 0 || floats(own) > floats(largest)) largest = own;
    }
    return largest;
  }

  /// What does not depend on micro-batches.
  void count_model() {
    const Graph& graph = part_.graph();
    const Sharding sharding = placed_.choice.sharding();
    const bool is_divided = sharding != Sharding::none && ranks_ > 1;
    const exec::KeptElements all = whole(graph, graph.parameters);
    share_ = is_divided ? largest_share() : 1;
    const exec::KeptElements own = is_divided ? shares(graph, share_) : all;
    if (setup_.optimizer != nullptr && setup_.optimizer->matrix_step && !setup_.optimizer->state_shape) {
      makers_.emplace(graph, *setup_.optimizer, optim::settings_of(*setup_.optimizer, setup_.model.job.optimizer),
                      ranks_);
    }
    const bool keeps_own = is_divided && divides_parameters(sharding);
    static const OptimizerDef kPlain;
    const auto needs = optim::needs_of_update({.graph = graph,
                                               .optimizer = setup_.optimizer != nullptr ? *setup_.optimizer : kPlain,
                                               .states = setup_.states,
                                               .parameters = keeps_own ? own : all,
                                               .updated = own,
                                               .is_divided = is_divided});
    for (const exec::MemoryNeed& need : needs) {
      const bool of_gradient = need.what == "gradient", of_parameters = need.what.starts_with("parameters");
      (of_gradient     ? model_.gradients
       : of_parameters ? model_.parameters
                       : model_.optimizer) += signed_bytes(exec::bytes_of({need}));
    }
    model_.gradients += from_other_parts();
    if (keeps_own) model_.parameters += gathered();
  }

  /// Sums of the weights that other parts have, too: at least one from each of these (optim::GpuOtherParts).
  std::int64_t from_other_parts() const {
    std::int64_t bytes = 0;
    for (const std::size_t own : part_.shared) {
      const std::size_t number = part_.part->parameters[own];
      const auto others = std::count_if(placed_.parts.begin(), placed_.parts.end(), [&](const PlacedPart& other) {
        const auto& has = other.part->parameters;
        return &other != &part_ && std::find(has.begin(), has.end(), number) != has.end();
      });
      bytes += others * signed_bytes(part_.graph().at(part_.graph().parameters[own]).spec.bytes());
    }
    return bytes;
  }

  /// The largest fraction of the gradient that a rank owns.
  double largest_share() const {
    std::int64_t most = 0;
    for (const comm::SliceLoad& slices : *part_.layout.slices) most = std::max(most, slices.own());
    return static_cast<double>(most) / (std::max<std::int64_t>(1, part_.layout.elements));
  }

  std::int64_t gathered() const {
    Graph graph = part_.graph();
    use_low_precision_weights(graph);
    const std::vector<std::vector<exec::OwnedExtent>> nobody(graph.parameters.size());
    const exec::GatherLayout layout(graph,
                                    optim::parameter_units(graph, part_.program(), setup_.model.job.bucket_bytes),
                                    nobody, part_.part != nullptr);
    return signed_bytes(exec::GpuGathers::bytes(layout, part_.program()));
  }

  const PlacedModel& placed_;
  const MemorySetup& setup_;
  const PlacedPart& part_;
  const int ranks_;
  RankMemory model_;
  double share_ = 1;  ///< of the gradient that a rank owns
  std::optional<optim::MatrixMakers> makers_;
  std::size_t arenas_ = 0, inputs_ = 0, messages_ = 0;
  std::map<std::pair<int, int>, RankMemory> known_;  ///< by number of micro-batches and workers
};

}  // namespace

std::vector<RankMemory> gpu_memory_of(const PlacedModel& placed, const MemorySetup& setup) {
  std::vector<RankMemory> ranks(placed.ranks());
  for (const PlacedPart& part : placed.parts) {
    GpuCounter counter(placed, setup, part);
    for (const int rank : part.ranks) ranks[rank] = counter.count(rank);
  }
  return ranks;
}

}  // namespace lockstep::plan
