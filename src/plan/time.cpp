#include "plan/time.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "balance/gather_waves.hpp"
#include "balance/pipeline.hpp"
#include "core/round_up.hpp"
#include "exec/parameters.hpp"
#include "graph/crossings.hpp"

namespace lockstep::plan {

namespace {

constexpr double kFloatBytes = sizeof(float);
constexpr double kAddBytes = 3 * kFloatBytes;  ///< two operands are read, one result is written

/// Bytes per micro-batch received in forward. The same amount of gradients goes back.
double received_bytes(const PlacedPart& part) {
  double bytes = 0;
  if (!part.part) return bytes;
  for (const auto& received : part.part->boundary.received) {
    bytes += static_cast<double>(part.graph().at(received.value).spec.bytes());
  }
  return bytes;
}

/// Bytes per micro-batch of arriving gradients: one from each part that reads a value.
double arriving_bytes(const PlacedPart& part) {
  double bytes = 0;
  if (!part.part) return bytes;
  for (const auto& arrival : part.part->boundary.arrivals) {
    bytes += static_cast<double>(part.graph().at(arrival.value).spec.bytes());
  }
  return bytes;
}

class Step {
 public:
  Step(const PlacedModel& placed, const TimeSetup& setup) : placed_(placed), setup_(setup) {
    result_.ranks.resize(setup.ranks.size());
    work_.resize(setup.ranks.size());
    for (const PlacedPart& part : placed.parts) {
      auto& of_ranks = micro_batches_.emplace_back();
      for (const int rank : part.ranks) of_ranks[rank] = micro_batch_seconds(part, speed(rank));
    }
  }

  StepTime run() {
    placed_.is_cut() ? compute_parts() : compute_whole();
    finish_compute();
    gather_parameters();
    reduce();
    update();
    result_.seconds += setup_.step_seconds;
    return std::move(result_);
  }

 private:
  [[nodiscard]] const RankSpeed& speed(int rank) const { return setup_.ranks[static_cast<std::size_t>(rank)]; }
  RankTime& of(int rank) { return result_.ranks[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int workers(int rank) const { return placed_.workers[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int micro_batches(int rank) const { return static_cast<int>(placed_.micro_batches_of(rank).size()); }
  [[nodiscard]] const NodeSeconds& micro_batch(int rank) const {
    return micro_batches_[static_cast<std::size_t>(placed_.part_of_rank[static_cast<std::size_t>(rank)])].at(rank);
  }
  /// Seconds for adding siblings on this rank, for all micro-batches of a step.
  [[nodiscard]] double merging(int rank) const {
    const PlacedPart& part = placed_.part_of(rank);
    const auto own = placed_.micro_batches_of(rank);
    const auto roots = std::ssize(comm::Tree(placed_.micro_batches).maximal_subtrees(own));
    const auto merges = static_cast<double>(std::ssize(own) - roots);
    return merges * static_cast<double>(part.buckets.elements()) * kAddBytes / speed(rank).rates.add_bytes;
  }

  void compute_whole() {
    for (int rank = 0; rank < placed_.ranks(); ++rank) {
      const NodeSeconds& each = micro_batch(rank);
      const int own = micro_batches(rank), used = std::clamp(own, 1, workers(rank));
      const int rounds = divide_up(own, used);
      of(rank).compute = rounds * (each.forward + each.backward) + (own > 0 ? each.first : 0) + merging(rank) / used;
      work_[static_cast<std::size_t>(rank)] =
          own * (each.forward + each.backward) + used * each.first + merging(rank) + own * setup_.data_seconds;
      ends_.push_back(of(rank).compute);
    }
  }

  void compute_parts() {
    balance::PipelineSetup pipeline;
    std::vector<int> first(static_cast<std::size_t>(placed_.ranks()) + 1);
    std::partial_sum(placed_.workers.begin(), placed_.workers.end(), first.begin() + 1);
    pipeline.speeds.assign(static_cast<std::size_t>(first.back()), 1.0);
    pipeline.in_flight = placed_.in_flight;
    for (const PlacedPart& part : placed_.parts) {
      const int rank = part.ranks.front();
      const NodeSeconds& each = micro_batch(rank);
      const Rates& rates = speed(rank).rates;
      balance::PartCost& cost = pipeline.parts.emplace_back();
      cost.forward = std::max(each.forward, 1e-9);
      cost.backward = std::max(each.backward, 1e-9);
      add_reads(part, cost);
      cost.receive =
          rates.message_seconds + received_bytes(part) / rates.bytes_between_parts(reads_other_hosts(part, cost.reads));
      auto& worker_of = pipeline.rank_of_micro_batch.emplace_back(static_cast<std::size_t>(placed_.micro_batches));
      for (const int of_part : part.ranks) {
        const auto own = placed_.micro_batches_of(of_part);
        for (std::size_t i = 0; i < own.size(); ++i) {
          const int worker = first[static_cast<std::size_t>(of_part)] + static_cast<int>(i) % workers(of_part);
          worker_of[static_cast<std::size_t>(own[i])] = worker;
          // Accounts for ranks whose speed differs from that of the part's first rank.
          const NodeSeconds& here = micro_batch(of_part);
          pipeline.speeds[static_cast<std::size_t>(worker)] =
              (each.forward + each.backward) / std::max(1e-12, here.forward + here.backward);
        }
      }
    }
    const balance::Pipeline times = balance::schedule(pipeline);
    const std::vector<int> waves = balance::waves_of(pipeline, times.order);
    passes_.resize(placed_.parts.size());
    for (std::size_t i = 0; i < waves.size(); ++i) {
      int& passes = passes_[static_cast<std::size_t>(times.order[i].part)];
      passes = std::max(passes, waves[i] + 1);
    }
    for (int rank = 0; rank < placed_.ranks(); ++rank) {
      double most = 0, sum = 0;
      for (int worker = first[static_cast<std::size_t>(rank)]; worker < first[static_cast<std::size_t>(rank) + 1];
           ++worker) {
        most = std::max(most, times.busy[static_cast<std::size_t>(worker)]);
        sum += times.busy[static_cast<std::size_t>(worker)];
      }
      const PlacedPart& part = placed_.part_of(rank);
      const double copied = micro_batches(rank) * (received_bytes(part) + arriving_bytes(part));
      of(rank).activation_bytes =
          static_cast<std::int64_t>(micro_batches(rank) * (received_bytes(part) + arriving_bytes(part)));
      const Rates& rates = speed(rank).rates;
      const double data = part.graph().inputs.empty() ? 0 : micro_batches(rank) * setup_.data_seconds;
      const double merges = merging(rank) / std::max(1, workers(rank));
      of(rank).compute = most + micro_batch(rank).first + merges;
      work_[static_cast<std::size_t>(rank)] =
          sum + micro_batch(rank).first + merging(rank) + data + copied / rates.bytes_between_parts(false);
      ends_.push_back(times.seconds + micro_batch(rank).first + merges);
    }
  }

  /// Whether ranks of the parts that a part reads from are on hosts where it has none itself.
  [[nodiscard]] bool reads_other_hosts(const PlacedPart& reader, const std::vector<int>& parts) const {
    std::set<int> hosts;
    for (const int rank : reader.ranks) hosts.insert(placed_.host_of[static_cast<std::size_t>(rank)]);
    return std::any_of(parts.begin(), parts.end(), [&](int part) {
      const std::vector<int>& ranks = placed_.parts[static_cast<std::size_t>(part)].ranks;
      return std::any_of(ranks.begin(), ranks.end(),
                         [&](int rank) { return !hosts.contains(placed_.host_of[static_cast<std::size_t>(rank)]); });
    });
  }

  // What a part reads, and how far tasks overlap there, by the seconds of a rank of each part.
  void add_reads(const PlacedPart& reader, balance::PartCost& cost) const {
    std::vector<const GraphPart*> parts;
    for (const PlacedPart& part : placed_.parts) parts.push_back(&*part.part);
    const auto work = [&](int p, std::size_t node, bool forward) {
      const PlacedPart& part = placed_.parts[static_cast<std::size_t>(p)];
      const NodeSeconds& seconds = speed(part.ranks.front()).nodes[static_cast<std::size_t>(part.nodes[node])];
      if (forward) return seconds.forward;
      return part.part->boundary.flow.backward[node] ? seconds.backward : 0;
    };
    for (const Crossing& crossing :
         crossings_of(parts, placed_.part_of_rank[static_cast<std::size_t>(reader.ranks.front())], work)) {
      cost.reads.push_back(crossing.part);
      cost.overlaps.push_back({crossing.left, crossing.before, crossing.gradient_left, crossing.before_gradient});
    }
  }

  /// The largest processor time per core of a host, from its ranks' `work`: no phase is shorter.
  [[nodiscard]] double least(const std::vector<double>& work) const {
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
  [[nodiscard]] double turns() const {
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
  /// rank, while earlier layers compute; only time beyond that compute is waiting.
  void gather_parameters() {
    if (!divides_parameters(placed_.choice.sharding())) return;
    double most = 0;
    for (int rank = 0; rank < placed_.ranks(); ++rank) {
      const PlacedPart& part = placed_.part_of(rank);
      const comm::Hosts hosts = placed_.hosts_of(part);
      const Rates& rates = speed(rank).rates;
      const auto of_part = static_cast<double>(part.ranks.size());
      const auto local = static_cast<double>(hosts.ranks(hosts.host_of(placed_.number_in_part(rank))).size());
      // Ranks of a host on CPUs share one copy.
      const double from_host = rates.uses_host_cores ? 0 : (local - 1) / of_part, from_others = 1 - local / of_part;
      const auto all = static_cast<double>(exec::TensorBlock::bytes_of(part.graph(), part.graph().parameters));
      const double seconds =
          passes(rank) * all * (from_host / rates.message_bytes + from_others / rates.bytes_between_hosts());
      most = std::max(most, seconds - of(rank).compute);
    }
    result_.seconds += std::max(0.0, most);
  }

  /// How often a rank, or its host, gets all parameters: in forward and in backward of each of its micro-batches; on
  /// GPUs, with each wave of all ranks that have its part (exec/gather_layout.hpp).
  [[nodiscard]] int passes(int rank) const {
    const auto rounds = [&](int of) { return divide_up(micro_batches(of), std::max(1, workers(of))); };
    if (speed(rank).rates.uses_host_cores) return 2 * rounds(rank);
    if (placed_.is_cut())
      return passes_[static_cast<std::size_t>(placed_.part_of_rank[static_cast<std::size_t>(rank)])];
    int most = 0;
    for (int of = 0; of < placed_.ranks(); ++of) most = std::max(most, rounds(of));
    return 2 * most;
  }

  /// Whether this rank's host has a core on which no worker computes.
  [[nodiscard]] bool has_spare_core(int rank) const {
    if (!speed(rank).rates.uses_host_cores) return true;
    int busy = 0;
    for (int r = 0; r < placed_.ranks(); ++r) {
      if (placed_.host_of[static_cast<std::size_t>(r)] == placed_.host_of[static_cast<std::size_t>(rank)])
        busy += workers(r);
    }
    return busy < speed(rank).rates.cores;
  }

  void reduce() {
    std::vector<double> work(result_.ranks.size());
    double most = 0;
    for (int rank = 0; rank < placed_.ranks(); ++rank) {
      const PlacedPart& part = placed_.part_of(rank);
      if (part.ranks.size() == 1) continue;
      const Rates& rates = speed(rank).rates;
      const comm::ReducePlan plan = placed_.reduce_plan(rank);
      const comm::Hosts hosts = placed_.hosts_of(part);
      const comm::PlannedBytes sent =
          placed_.streams_gradients
              ? comm::streamed_bytes_of(plan, hosts, static_cast<std::size_t>(micro_batches(rank)))
              : comm::bytes_of(plan, hosts);
      of(rank).gradient_bytes = static_cast<std::int64_t>(sent.inside_host + sent.between_hosts);
      std::int64_t own = 0;
      for (const comm::BucketPlan& bucket : plan.buckets) own += bucket.own_size();
      const auto added = static_cast<double>(plan.sums.additions.size()) * static_cast<double>(own) * kAddBytes;
      double seconds = added / rates.add_bytes;
      if (!rates.uses_host_cores) seconds += static_cast<double>(sent.inside_host) / rates.message_bytes;
      if (!rates.uses_host_cores || rates.network_bytes > 0) {
        seconds += static_cast<double>(sent.between_hosts) / rates.bytes_between_hosts();
      }
      const double buckets = std::max(1, part.buckets.count());
      // All buckets but the last can be reduced while earlier layers compute.
      const double hidden =
          has_spare_core(rank) ? std::min(seconds * (1 - 1 / buckets), micro_batch(rank).backward) : 0;
      const double turns = std::ceil(std::log2(static_cast<double>(part.ranks.size()))) + 1;
      of(rank).reduce = seconds - hidden + turns * rates.message_seconds;
      work[static_cast<std::size_t>(rank)] = of(rank).reduce;
      most = std::max(most, of(rank).reduce);
    }
    result_.seconds += std::max(most, least(work));
  }

  void update() {
    std::vector<double> work(result_.ranks.size());
    double most = 0;
    for (int rank = 0; rank < placed_.ranks(); ++rank) {
      const PlacedPart& part = placed_.part_of(rank);
      double elements = 0;
      for (const ValueId id : part.graph().parameters) {
        const Value& value = part.graph().at(id);
        if (!value.frozen) elements += static_cast<double>(value.spec.elements());
      }
      const Rates& rates = speed(rank).rates;
      const bool divided = placed_.choice.sharding() != Sharding::none;
      const double each = setup_.update_seconds > 0
                              ? setup_.update_seconds
                              : update_bytes_of_element(setup_.optimizer_states) / rates.update_bytes;
      const double seconds = elements * each / (divided ? static_cast<double>(part.ranks.size()) : 1);
      of(rank).update = seconds / std::max(1, workers(rank));
      work[static_cast<std::size_t>(rank)] = seconds;
      most = std::max(most, of(rank).update);
    }
    result_.seconds += std::max(most, least(work));
  }

  const PlacedModel& placed_;
  const TimeSetup& setup_;
  std::vector<std::map<int, NodeSeconds>> micro_batches_;  ///< by part: by rank
  std::vector<double> work_;                               ///< by rank: processor time of the micro-batches
  std::vector<double> ends_;                               ///< by rank: the time at which its micro-batches are done
  std::vector<int> passes_;                                ///< by part: waves of its gathers; of a model in parts
  StepTime result_;
};

}  // namespace

NodeSeconds micro_batch_seconds(const PlacedPart& part, const RankSpeed& speed) {
  NodeSeconds sum;
  for (std::size_t i = 0; i < part.program.instructions.size(); ++i) {
    const Instruction& instruction = part.program.instructions[i];
    const bool forward = part.part ? static_cast<std::int32_t>(i) < part.program.forward_end
                                   : instruction.kind == Instruction::Kind::forward;
    double seconds = 0;
    if (instruction.kind == Instruction::Kind::add) {
      seconds = static_cast<double>(instruction.elements) * kAddBytes / speed.rates.element_bytes;
    } else {
      const auto node = static_cast<std::size_t>(part.nodes[static_cast<std::size_t>(instruction.node)]);
      const NodeSeconds& of = speed.nodes[node];
      seconds = instruction.kind == Instruction::Kind::backward ? of.backward : of.forward;
      if (instruction.kind == Instruction::Kind::forward) sum.first += of.first;
    }
    (forward ? sum.forward : sum.backward) += seconds;
  }
  return sum;
}

StepTime time_of(const PlacedModel& placed, const TimeSetup& setup) {
  return Step(placed, setup).run();
}

}  // namespace lockstep::plan
