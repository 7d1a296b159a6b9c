#include "run/plan/time.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "comm/reduce/rank_loads.hpp"
#include "core/round_up.hpp"
#include "graph/crossings.hpp"
#include "step/balance/gather_waves.hpp"
#include "step/balance/pipeline.hpp"
#include "step/optim/matrix_makers.hpp"

namespace lockstep::plan {

namespace {

constexpr double kFloatBytes = sizeof(float);
constexpr double kAddBytes = 3 * kFloatBytes;  ///< two operands are read, one result is written

/// Bytes per micro-batch received in forward. The same amount of gradients goes back.
double received_bytes(const PlacedPart& part) {
  double bytes = 0;
  if (!part.part) return bytes;
  for (const auto& received : part.part->boundary.received) {
    bytes += part.graph().at(received.value).spec.bytes();
  }
  return bytes;
}

/// Bytes per micro-batch of arriving gradients: one from each part that reads a value.
double arriving_bytes(const PlacedPart& part) {
  double bytes = 0;
  if (!part.part) return bytes;
  for (const auto& arrival : part.part->boundary.arrivals) {
    bytes += part.graph().at(arrival.value).spec.bytes();
  }
  return bytes;
}

double trained_elements(const PlacedPart& part) {
  double elements = 0;
  for (const ValueId id : part.graph().parameters) {
    const Value& value = part.graph().at(id);
    if (!value.frozen) elements += value.spec.elements();
  }
  return elements;
}

class Step {
 public:
  /// `known`: see time_of().
  Step(const PlacedModel& placed, const TimeSetup& setup, KnownPipelines* known)
      : placed_(placed), setup_(setup), known_(known != nullptr ? *known : own_) {
    const std::size_t ranks = setup.ranks.size();
    result_.ranks.resize(ranks);
    work_.resize(ranks);
    micro_batches_.resize(ranks);
    hosts_.resize(static_cast<std::size_t>(*std::max_element(placed.host_of.begin(), placed.host_of.end())) + 1);
    for (const PlacedPart& part : placed.parts) {
      std::map<const void*, NodeSeconds> by_device;
      for (const int rank : part.ranks) {
        const auto [known_seconds, is_new] = by_device.try_emplace(&speed(rank).nodes);
        if (is_new) known_seconds->second = micro_batch_seconds(part, speed(rank));
        micro_batches_[rank] = known_seconds->second;
        host(rank).busy += workers(rank);
        most_rounds_ = std::max(most_rounds_, rounds(rank));
      }
    }
  }

  StepTime run() {
    placed_.is_cut() ? compute_parts() : compute_whole();
    finish();
    return std::move(result_);
  }

  double run_without_simulation() {
    placed_.is_cut() ? compute_least() : compute_whole();
    finish();
    return result_.seconds;
  }

 private:
  struct Host {
    int busy = 0;              ///< workers of all its ranks
    double sent_partials = 0;  ///< bytes to other hosts
    double sent_updated = 0;
  };

  void finish() {
    finish_compute();
    gather_parameters();
    reduce();
    update();
    result_.seconds += setup_.step_seconds;
  }

  const RankSpeed& speed(int rank) const { return setup_.ranks[rank]; }
  RankTime& of(int rank) { return result_.ranks[rank]; }
  Host& host(int rank) { return hosts_[placed_.host_of[rank]]; }
  int workers(int rank) const { return placed_.workers[rank]; }
  int micro_batches(int rank) const { return placed_.micro_batches_of(rank).size(); }
  int rounds(int rank) const { return divide_up(micro_batches(rank), std::max(1, workers(rank))); }
  int number(int rank) const { return placed_.number_in_part[rank]; }
  const NodeSeconds& micro_batch(int rank) const { return micro_batches_[rank]; }
  /// Seconds for adding siblings on this rank, for all micro-batches of a step.
  double merging(int rank) const {
    const double merges = micro_batches(rank) - std::ssize(placed_.sums_of(rank).roots);
    const double elements = placed_.part_of(rank).layout.elements;
    return merges * elements * kAddBytes / speed(rank).rates.add_bytes;
  }

  void compute_whole() {
    for (int rank = 0; rank < placed_.ranks(); ++rank) {
      const NodeSeconds& each = micro_batch(rank);
      const int own = micro_batches(rank), used = std::clamp(own, 1, workers(rank));
      const int rounds = divide_up(own, used);
      of(rank).compute = rounds * (each.forward + each.backward) + (own > 0 ? each.first : 0) + merging(rank) / used;
      work_[rank] =
          own * (each.forward + each.backward) + used * each.first + merging(rank) + own * setup_.data_seconds;
      ends_.push_back(of(rank).compute);
    }
  }

  /// The costs of a part, by the seconds of its first rank.
  balance::PartCost cost_of_part(const PlacedPart& part) const {
    const int rank = part.ranks.front();
    const NodeSeconds& each = micro_batch(rank);
    const Rates& rates = speed(rank).rates;
    balance::PartCost cost;
    cost.forward = std::max(each.forward, 1e-9);
    cost.backward = std::max(each.backward, 1e-9);
    add_reads(part, cost);
    cost.receive =
        rates.message_seconds + received_bytes(part) / rates.bytes_between_parts(reads_other_hosts(part, cost.reads));
    return cost;
  }

  PipelineTimes simulate(const std::vector<int>& first) const {
    balance::PipelineSetup pipeline;
    pipeline.speeds.assign(first.back(), 1.0);
    pipeline.in_flight = placed_.in_flight;
    for (const PlacedPart& part : placed_.parts) {
      const NodeSeconds& each = micro_batch(part.ranks.front());
      pipeline.parts.push_back(cost_of_part(part));
      auto& worker_of = pipeline.rank_of_micro_batch.emplace_back(static_cast<std::size_t>(placed_.micro_batches));
      for (const int of_part : part.ranks) {
        std::vector<int> own = placed_.micro_batches_of(of_part);
        std::sort(own.begin(), own.end());
        for (std::size_t i = 0; i < own.size(); ++i) {
          const int worker = first[of_part] + static_cast<int>(i) % workers(of_part);
          worker_of[own[i]] = worker;
          // Accounts for ranks whose speed differs from that of the part's first rank.
          const NodeSeconds& here = micro_batch(of_part);
          pipeline.speeds[worker] = (each.forward + each.backward) / std::max(1e-12, here.forward + here.backward);
        }
      }
    }
    balance::Pipeline simulated = balance::schedule(pipeline);
    PipelineTimes times{.seconds = simulated.seconds, .busy = std::move(simulated.busy), .passes = {}};
    if (!divides_parameters(placed_.choice.sharding())) return times;
    const std::vector<int> waves = balance::waves_of(pipeline, simulated.order);
    times.passes.resize(placed_.parts.size());
    for (std::size_t i = 0; i < waves.size(); ++i) {
      int& passes = times.passes[simulated.order[i].part];
      passes = std::max(passes, waves[i] + 1);
    }
    return times;
  }

  void compute_parts() {
    std::vector<int> first(static_cast<std::size_t>(placed_.ranks()) + 1);
    std::partial_sum(placed_.workers.begin(), placed_.workers.end(), first.begin() + 1);
    const PlacedPart& front = placed_.parts.front();
    PipelineTimes& times = known_[{front.programs.get(), front.dealt.get()}];
    if (times.busy.empty() || (times.passes.empty() && divides_parameters(placed_.choice.sharding()))) {
      times = simulate(first);
    }
    passes_ = times.passes;
    for (int rank = 0; rank < placed_.ranks(); ++rank) {
      double most = 0, sum = 0;
      for (int worker = first[rank]; worker < first[static_cast<std::size_t>(rank) + 1]; ++worker) {
        most = std::max(most, times.busy[worker]);
        sum += times.busy[worker];
      }
      note_part(rank, most, sum, times.seconds);
    }
  }

  /// No step is shorter than what one of its ranks computes.
  void compute_least() {
    for (int rank = 0; rank < placed_.ranks(); ++rank) {
      const double work = micro_batches(rank) * (micro_batch(rank).forward + micro_batch(rank).backward);
      const double compute = work / std::max(1, workers(rank));
      note_part(rank, compute, work, compute);
    }
  }

  void note_part(int rank, double compute, double work, double end) {
    const PlacedPart& part = placed_.part_of(rank);
    const double copied = micro_batches(rank) * (received_bytes(part) + arriving_bytes(part));
    of(rank).activation_bytes = copied;
    const Rates& rates = speed(rank).rates;
    const double data = part.graph().inputs.empty() ? 0 : micro_batches(rank) * setup_.data_seconds;
    const double merges = merging(rank) / std::max(1, workers(rank));
    of(rank).compute = compute + micro_batch(rank).first + merges;
    work_[rank] = work + micro_batch(rank).first + merging(rank) + data + copied / rates.bytes_between_parts(false);
    ends_.push_back(end + micro_batch(rank).first + merges);
  }

  /// Whether ranks of the parts that a part reads from are on hosts where it has none itself.
  bool reads_other_hosts(const PlacedPart& reader, const std::vector<int>& parts) const {
    std::set<int> hosts;
    for (const int rank : reader.ranks) hosts.insert(placed_.host_of[rank]);
    return std::any_of(parts.begin(), parts.end(), [&](int part) {
      const std::vector<int>& ranks = placed_.parts[part].ranks;
      return std::any_of(ranks.begin(), ranks.end(), [&](int rank) { return !hosts.contains(placed_.host_of[rank]); });
    });
  }

  // What a part reads, and how far tasks overlap there, by the seconds of a rank of each part.
  void add_reads(const PlacedPart& reader, balance::PartCost& cost) const {
    std::vector<const GraphPart*> parts;
    for (const PlacedPart& part : placed_.parts) parts.push_back(&*part.part);
    const auto work = [&](int p, std::size_t node, bool forward) {
      const PlacedPart& part = placed_.parts[p];
      const NodeSeconds& seconds = speed(part.ranks.front()).nodes[part.nodes[node]];
      if (forward) return seconds.forward;
      return part.part->boundary.flow.backward[node] ? seconds.backward : 0;
    };
    for (const Crossing& crossing : crossings_of(parts, placed_.part_of_rank[reader.ranks.front()], work)) {
      cost.reads.push_back(crossing.part);
      cost.overlaps.push_back({crossing.left, crossing.before, crossing.gradient_left, crossing.before_gradient});
    }
  }

  /// The largest processor time per core of a host, from its ranks' `work`: no phase is shorter.
  double least(const std::vector<double>& work) const {
    std::map<int, double> by_host;
    for (std::size_t r = 0; r < work.size(); ++r) {
      if (!setup_.ranks[r].rates.uses_host_cores) continue;
      by_host[placed_.host_of[r]] += work[r] / setup_.ranks[r].rates.cores;
    }
    double most = 0;
    for (const auto& [host, seconds] : by_host) most = std::max(most, seconds);
    return most;
  }

  /// If parts have more workers than their host has cores, tasks that wait for each other also wait for a core.
  double turns() const {
    if (!placed_.is_cut()) return 1;
    std::map<int, double> of_cores;
    for (std::size_t r = 0; r < setup_.ranks.size(); ++r) {
      if (setup_.ranks[r].rates.uses_host_cores) {
        of_cores[placed_.host_of[r]] += static_cast<double>(placed_.workers[r]) / setup_.ranks[r].rates.cores;
      }
    }
    double most = 1;
    for (const auto& [host, load] : of_cores) most = std::max(most, load);
    return most;
  }

  void finish_compute() {
    double end = std::max(*std::max_element(ends_.begin(), ends_.end()) * turns(), least(work_));
    if (placed_.ranks() > 1) end *= 1 + setup_.unevenness;
    for (RankTime& rank : result_.ranks) rank.waits = std::max(0.0, end - rank.compute);
    result_.seconds = end;
  }

  /// If hosts divide the parameters, or ranks on GPUs, those of others are received once for all workers of the host or
  /// rank, while earlier layers compute; only time beyond that compute is waiting. On GPUs they pass from rank to rank,
  /// and enter each host once.
  void gather_parameters() {
    if (!divides_parameters(placed_.choice.sharding())) return;
    double most = 0;
    for (int rank = 0; rank < placed_.ranks(); ++rank) {
      const PlacedPart& part = placed_.part_of(rank);
      if (part.ranks.size() == 1) continue;
      const Rates& rates = speed(rank).rates;
      const double of_part = part.ranks.size(), local = placed_.local_ranks(rank);
      // Ranks of a host on CPUs share one copy.
      const double from_host = rates.uses_host_cores ? 0 : (local - 1) / of_part, from_others = 1 - local / of_part;
      const auto all = part.layout.elements * kFloatBytes;
      const double seconds =
          passes(rank) * all * (from_host / rates.message_bytes + from_others / rates.bytes_between_hosts());
      most = std::max(most, seconds - of(rank).compute);
      const comm::PlannedBytes sent = gathered(rank);
      of(rank).parameter_bytes = passes(rank) * static_cast<std::int64_t>(sent.inside_host + sent.between_hosts);
    }
    result_.seconds += std::max(0.0, most);
  }

  comm::PlannedBytes gathered(int rank) const {
    return comm::gathered_bytes_of(placed_.slices_of(rank), *placed_.part_of(rank).hosts, number(rank),
                                   speed(rank).rates.uses_host_cores);
  }

  /// How often a rank, or its host, gets all parameters: in forward and in backward of each of its micro-batches; on
  /// GPUs, with each wave of all ranks that have its part (step/exec/gather_layout.hpp).
  int passes(int rank) const {
    if (speed(rank).rates.uses_host_cores) return 2 * rounds(rank);
    if (!placed_.is_cut()) return 2 * most_rounds_;
    return passes_.empty() ? 0 : passes_[placed_.part_of_rank[rank]];
  }

  /// Whether this rank's host has a core on which no worker computes.
  [[nodiscard]] bool has_spare_core(int rank) {
    return !speed(rank).rates.uses_host_cores || host(rank).busy < speed(rank).rates.cores;
  }

  /// Seconds for what a rank of its host sends, besides the messages of all ranks of the host to others, of which the
  /// host's network takes `between` bytes.
  double message_seconds(int rank, std::uint64_t inside, double between) const {
    const Rates& rates = speed(rank).rates;
    double seconds = 0;
    if (!rates.uses_host_cores) seconds += inside / rates.message_bytes;
    if (!rates.uses_host_cores || rates.network_bytes > 0) seconds += between / rates.bytes_between_hosts();
    return seconds;
  }
  /// Seconds until all ranks of a part have begun to send to each other.
  double turns_seconds(int rank) const {
    const double ranks = placed_.part_of(rank).ranks.size();
    return (std::ceil(std::log2(ranks)) + 1) * speed(rank).rates.message_seconds;
  }

  void reduce() {
    std::vector<double> work(result_.ranks.size());
    std::vector<comm::PlannedBytes> sent(result_.ranks.size());
    for (int rank = 0; rank < placed_.ranks(); ++rank) {
      const PlacedPart& part = placed_.part_of(rank);
      if (part.ranks.size() == 1) continue;
      comm::PlannedBytes& bytes = sent[rank];
      bytes = comm::planned_bytes_of(placed_.sums_of(rank), placed_.slices_of(rank), *part.hosts, number(rank),
                                     placed_.streams_gradients);
      of(rank).gradient_bytes = bytes.inside_host + bytes.between_hosts;
      host(rank).sent_partials += bytes.between_hosts;
    }
    double most = 0;
    for (int rank = 0; rank < placed_.ranks(); ++rank) {
      const PlacedPart& part = placed_.part_of(rank);
      if (part.ranks.size() == 1) continue;
      const std::size_t r = rank;
      const auto added =
          static_cast<double>(placed_.sums_of(rank).additions()) * placed_.slices_of(rank).own() * kAddBytes;
      const double seconds =
          added / speed(rank).rates.add_bytes + message_seconds(rank, sent[r].inside_host, host(rank).sent_partials);
      const double buckets = std::max(1, part.layout.count);
      // All buckets but the last can be reduced while earlier layers compute.
      const double hidden =
          has_spare_core(rank) ? std::min(seconds * (1 - 1 / buckets), micro_batch(rank).backward) : 0;
      work[r] = of(rank).reduce = seconds - hidden + turns_seconds(rank);
      most = std::max(most, of(rank).reduce);
    }
    result_.seconds += std::max(most, least(work));
  }

  /// By rank of the part: floating-point operations of the steps of matrices that it makes; empty: there are none.
  std::vector<double> operations_on_matrices(const PlacedPart& part) const {
    std::vector<double> operations;
    if (setup_.optimizer == nullptr || !setup_.optimizer->matrix_step) return operations;
    const int ranks = part.ranks.size();
    const optim::MatrixMakers makers(part.graph(), *setup_.optimizer, setup_.optimizer_settings, ranks);
    for (int rank = 0; rank < ranks; ++rank) operations.push_back(makers.operations(rank));
    return operations;
  }

  void update() {
    std::vector<double> work(result_.ranks.size());
    const bool divided = placed_.choice.sharding() != Sharding::none;
    const bool gathers = divided && !divides_parameters(placed_.choice.sharding());
    std::vector<comm::PlannedBytes> sent(result_.ranks.size());
    for (int rank = 0; gathers && rank < placed_.ranks(); ++rank) {
      if (placed_.part_of(rank).ranks.size() == 1) continue;
      comm::PlannedBytes& bytes = sent[rank];
      bytes = gathered(rank);
      of(rank).parameter_bytes = bytes.inside_host + bytes.between_hosts;
      host(rank).sent_updated += bytes.between_hosts;
    }
    double most = 0;
    for (const PlacedPart& part : placed_.parts) {
      const double elements = trained_elements(part);
      const std::vector<double> operations = operations_on_matrices(part);
      const double all = std::accumulate(operations.begin(), operations.end(), 0.0);
      for (const int rank : part.ranks) {
        const Rates& rates = speed(rank).rates;
        const double own = operations.empty() ? 0 : operations[number(rank)];
        const bool is_measured = setup_.update_seconds > 0;
        const double each =
            is_measured ? setup_.update_seconds : update_bytes_of_element(setup_.optimizer_states) / rates.update_bytes;
        // Ranks share the steps of whole matrices, which take most of an update that has been measured with them.
        double share = divided ? 1 / static_cast<double>(part.ranks.size()) : 1;
        if (is_measured && all > 0) share = own / all;
        const double seconds = elements * each * share + (is_measured || own == 0 ? 0 : own / rates.matmul_flops);
        // Nobody computes while updated parameters are on their way.
        const double messages =
            gathers && part.ranks.size() > 1
                ? message_seconds(rank, sent[rank].inside_host, host(rank).sent_updated) + turns_seconds(rank)
                : 0;
        of(rank).update = seconds / std::max(1, workers(rank)) + messages;
        work[rank] = seconds;
        most = std::max(most, of(rank).update);
      }
    }
    result_.seconds += std::max(most, least(work));
  }

  const PlacedModel& placed_;
  const TimeSetup& setup_;
  KnownPipelines own_;
  KnownPipelines& known_;
  std::vector<NodeSeconds> micro_batches_;  ///< by rank: of one micro-batch
  std::vector<Host> hosts_;
  int most_rounds_ = 0;       ///< of micro-batches, on any rank
  std::vector<double> work_;  ///< by rank: processor time of the micro-batches
  std::vector<double> ends_;  ///< by rank: the time at which its micro-batches are done
  std::vector<int> passes_;   ///< by part: waves of its gathers; of a model in parts
  StepTime result_;
};

}  // namespace

NodeSeconds micro_batch_seconds(const PlacedPart& part, const RankSpeed& speed) {
  NodeSeconds sum;
  for (std::size_t i = 0; i < part.program().instructions.size(); ++i) {
    const Instruction& instruction = part.program().instructions[i];
    const bool forward = part.part ? static_cast<std::int32_t>(i) < part.program().forward_end
                                   : instruction.kind == Instruction::Kind::forward;
    double seconds = 0;
    if (instruction.kind == Instruction::Kind::add) {
      seconds = instruction.elements * kAddBytes / speed.rates.element_bytes;
    } else {
      const std::size_t node = part.nodes[instruction.node];
      const NodeSeconds& of = speed.nodes[node];
      seconds = instruction.kind == Instruction::Kind::backward ? of.backward : of.forward;
      if (instruction.kind == Instruction::Kind::forward) sum.first += of.first;
    }
    (forward ? sum.forward : sum.backward) += seconds;
  }
  return sum;
}

StepTime time_of(const PlacedModel& placed, const TimeSetup& setup, KnownPipelines* known) {
  return Step(placed, setup, known).run();
}

double least_time_of(const PlacedModel& placed, const TimeSetup& setup) {
  return Step(placed, setup, nullptr).run_without_simulation();
}

}  // namespace lockstep::plan
