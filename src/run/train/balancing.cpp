#include "run/train/balancing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <limits>
#include <numeric>
#include <utility>

#include "comm/transport/host_memory.hpp"
#include "core/median.hpp"
#include "core/round_up.hpp"
#include "core/spans.hpp"
#include "device/device.hpp"
#include "device/threads.hpp"
#include "lockstep/error.hpp"
#include "run/train/known_speeds.hpp"
#include "step/balance/cost.hpp"
#include "step/exec/worker_pool.hpp"

namespace lockstep::train {

namespace {

constexpr double kProbeGain = 0.1;     // high, because a short probe is noisy
constexpr double kProbeSeconds = 0.2;  // upper bound of a probe's time, unless a single micro-batch takes longer
constexpr int kProbeRounds = 15;
constexpr const char* kThisRun = "steps of this run";
constexpr double kRecordGain = 0.02;        // low, because a record averages many steps
constexpr double kMemoryUsed = 0.8;         // fraction of the free memory: caches grow, too
constexpr double kSharedMemoryUsed = 0.95;  // of what is free in /dev/shm: flags and scalars need some, too
constexpr int kFirstIdleTry = 8;            // steps
constexpr int kLongestIdlePause = 512;      // steps

events::ByRank by_rank(const std::vector<double>& values) {
  events::ByRank map;
  for (std::size_t r = 0; r < values.size(); ++r) map[r] = values[r];
  return map;
}

std::int64_t free_shared_memory() {
  struct statvfs info {};
  if (statvfs("/dev/shm", &info) != 0) return std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(info.f_bavail) * static_cast<std::int64_t>(info.f_frsize);
}

}  // namespace

Balancing::Balancing(const RunContext& run, const ModelParts& parts)
    : run_(run), parts_(parts), assignments_(parts.ranks().size()) {
  counts_ = first_counts();
  assignments_ = assign_micro_batches();
  const int micro_batches = run.job.micro_batches, ranks = run.communicator.size();
  const int own_ranks = parts.ranks()[own_part()].size();
  int max_micro_batches = own_micro_batches().size();
  if (run.options.balancer != nullptr) max_micro_batches = micro_batches;
  if (is_automatic()) max_micro_batches = std::min(micro_batches, 2 * divide_up(micro_batches, own_ranks));
  workers_ = exec::worker_count(run.job.threads, run.communicator, run.device, max_micro_batches);
  const double mine = workers_;
  std::vector<double> all(ranks);
  run.communicator.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)),
                              {"start", 0, run.timeout()});
  workers_of_ranks_.assign(all.begin(), all.end());
  waiting_ = std::make_unique<balance::Waiting>(workers_of_ranks_);
}

const std::vector<int>& Balancing::own_micro_batches() const {
  return assignment().micro_batches_of_rank.at(parts_.group().rank());
}

std::vector<comm::MicroBatchAssignment> Balancing::assign_micro_batches() const {
  std::vector<comm::MicroBatchAssignment> placed;
  for (std::size_t part = 0; part < assignments_.size(); ++part) {
    const auto hosts = hosts_of_part(part);
    placed.push_back(comm::place_micro_batches(parts_.of_part(part, counts_), assignments_[part], hosts));
    if (divides_gradients(run_.job.parallel.sharding))
      placed.back() = comm::interleave_micro_batches(placed.back(), hosts);
  }
  return placed;
}

bool Balancing::is_automatic() const {
  // With `exact: never`, another assignment gives other bits; the run keeps its first one, so that it can be
  // reproduced.
  const BalanceMode mode = run_.job.balance.mode;
  return (mode == BalanceMode::automatic || mode == BalanceMode::prometheus) && run_.job.exact != Exactness::never &&
         run_.communicator.size() > 1 && run_.options.balancer == nullptr;
}

std::vector<std::string> Balancing::hosts() const {
  std::vector<std::string> hosts;
  for (int r = 0; r < run_.communicator.size(); ++r) hosts.push_back(run_.communicator.topology().host_name(r));
  return hosts;
}

std::vector<int> Balancing::first_counts() {
  if (!run_.job.balance.weights.empty()) {
    weights_ = balance::weights_of_ranks(run_.job.balance.weights, hosts_of_ranks(run_),
                                         run_.job.place_of("job.balance.weights").text());
  }
  return counts_by(weights_, run_.job.micro_batches);
}

// Micro-batches in proportion to `weights`, by rank; empty: equal.
std::vector<int> Balancing::counts_by(const std::vector<double>& weights, int micro_batches) const {
  std::vector<int> counts(run_.communicator.size());
  for (std::size_t part = 0; part < parts_.ranks().size(); ++part) {
    parts_.put_part(part,
                    weights.empty() ? comm::equal_counts(micro_batches, parts_.ranks()[part].size())
                                    : comm::counts_by_weights(micro_batches, parts_.of_part(part, weights)),
                    counts);
  }
  return counts;
}

void Balancing::find_limits(const comm::GradientBuckets& buckets, RankFacts& mine) const {
  const int micro_batches = run_.job.micro_batches;
  mine.max_micro_batches = mine.max_of_any_rank = micro_batches;
  if (max_micro_batches_) {
    mine.max_micro_batches = *max_micro_batches_;
    return;
  }
  const bool streams = divides_gradients(run_.job.parallel.sharding);
  std::int64_t elements = 0;
  for (const auto& bucket : buckets.buckets) elements += streams && bucket.scattered ? 0 : bucket.elements;
  const std::int64_t gradient_bytes = elements * static_cast<std::int64_t>(sizeof(float));
  const int local = run_.communicator.topology().local_size(run_.communicator.rank());
  const auto memory = static_cast<std::int64_t>(kMemoryUsed * device::available_memory()) / local;
  mine.max_micro_batches = balance::max_micro_batches(
      balance::MemoryForGradients{.memory = memory, .gradient_bytes = gradient_bytes, .workers = workers_},
      micro_batches);
  if (!comm::shares_memory_of_host(run_.communicator)) return;
  // Nothing is reduced yet, so all that is free now is free whenever the reducer maps its memory again.
  const std::int64_t shared = kSharedMemoryUsed * free_shared_memory();
  mine.max_of_any_rank = balance::max_micro_batches(
      balance::SharedMemoryLimit{.bytes = shared, .gradient_bytes = gradient_bytes, .ranks = local}, micro_batches);
}

// Seconds per micro-batch: the median of several, so that a disturbed one does not count.
double Balancing::probe(exec::Executor& executor, const comm::GradientBuckets& buckets) const {
  (void)executor.try_micro_batches(workers_, buckets);  // the first ones create kernels and touch memory
  std::vector<double> seconds;
  const auto start = Clock::now();
  for (int round = 0; round < kProbeRounds && (round == 0 || seconds_since(start) < kProbeSeconds); ++round) {
    const auto some = executor.try_micro_batches(workers_, buckets);
    seconds.insert(seconds.end(), some.begin(), some.end());
  }
  return median(std::move(seconds));
}

void Balancing::start(exec::Executor& executor, const comm::GradientBuckets& buckets, const std::string& workload,
                      const balance::Record& record, std::int64_t step) {
  if (!is_automatic()) return;
  const Operation operation{"start", 0, run_.timeout()};
  RankFacts mine{.workers = static_cast<double>(workers_)};
  find_limits(buckets, mine);
  const auto rank_hosts = run_.job.balance.prometheus.empty() ? std::vector<balance::RankHost>{} : hosts_of_ranks(run_);
  KnownSpeeds speeds;
  if (run_.leads() && !parts_.is_cut()) {
    speeds = known_speeds(record, hosts(), workers_of_ranks_, run_.job.balance.prometheus, workload, rank_hosts);
    if (!speeds.warning.empty()) run_.warn(speeds.warning);
  }
  bool known = !speeds.seconds_per_micro_batch.empty();
  evidence_ = known ? speeds.evidence : "a probe at the start";
  run_.communicator.broadcast(std::as_writable_bytes(std::span(&known, 1)), 0, operation);
  if (!known) {
    mine.seconds_per_micro_batch = probe(executor, buckets);
  }
  std::vector<RankFacts> facts(run_.communicator.size());
  run_.communicator.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(facts)), operation);
  if (known) {
    for (std::size_t r = 0; r < facts.size() && run_.leads(); ++r) {
      facts[r].seconds_per_micro_batch = speeds.seconds_per_micro_batch[r];
    }
  }
  if (run_.leads()) {
    make_balancers(facts);
    begin(known, facts);
  }
  bool moves = pending_.has_value();
  run_.communicator.broadcast(std::as_writable_bytes(std::span(&moves, 1)), 0, operation);
  if (moves) move(step);
  evidence_ = kThisRun;
}

void Balancing::make_balancers(const std::vector<RankFacts>& facts) {
  for (std::size_t part = 0; part < parts_.ranks().size(); ++part) {
    auto& balancer = balancers_.emplace_back();
    if (parts_.ranks()[part].size() == 1) continue;
    balance::BalancerOptions options;
    options.micro_batches = run_.job.micro_batches;
    options.workers = parts_.of_part(part, workers_of_ranks_);
    options.numbers = parts_.ranks()[part];
    const std::vector<int> counts = parts_.of_part(part, counts_);
    const std::vector<RankFacts> ranks = parts_.of_part(part, facts);
    double most = options.micro_batches;
    for (const RankFacts& rank : ranks) most = std::min(most, rank.max_of_any_rank);
    int room = 0;
    for (const RankFacts& rank : ranks) {
      options.max_micro_batches.push_back(std::min(most, rank.max_micro_batches));
      room += options.max_micro_batches.back();
    }
    // An equal assignment is allowed even if memory seems too small for it: the limit is only an estimate.
    for (std::size_t r = 0; r < counts.size(); ++r) {
      options.max_micro_batches[r] =
          std::max(options.max_micro_batches[r], room < options.micro_batches ? options.micro_batches : counts[r]);
    }
    balancer = std::make_unique<balance::Balancer>(std::move(options), counts);
  }
}

void Balancing::begin(bool known, const std::vector<RankFacts>& facts) {
  std::vector<double> seconds;
  for (const RankFacts& rank : facts) seconds.push_back(rank.seconds_per_micro_batch);
  for (std::size_t part = 0; part < balancers_.size(); ++part) {
    if (!balancers_[part]) continue;
    merge(part, balancers_[part]->start(parts_.of_part(part, seconds), known ? kRecordGain : kProbeGain, evidence_));
  }
}

void Balancing::merge(std::size_t part, std::optional<balance::Decision> decision) {
  if (!decision) return;
  if (!parts_.is_cut()) {
    pending_ = std::move(decision);
    return;
  }
  if (!pending_) {
    pending_.emplace();
    pending_->counts = counts_;
    pending_->seconds_per_micro_batch.resize(counts_.size());
  }
  parts_.put_part(part, decision->counts, pending_->counts);
  parts_.put_part(part, decision->seconds_per_micro_batch, pending_->seconds_per_micro_batch);
  pending_->reason += fmt::format("{}part {}: {}", pending_->reason.empty() ? "" : "; ", part, decision->reason);
  pending_->measured = decision->measured;
  pending_->reduce_seconds = std::max(pending_->reduce_seconds, decision->reduce_seconds);
  pending_->predicted_before = std::max(pending_->predicted_before, decision->predicted_before);
  pending_->predicted = std::max(pending_->predicted, decision->predicted);
}

// Whether a rank without micro-batches should compute one, so that it is noticed if it has become faster.
bool Balancing::try_idle() {
  if (!is_automatic() || !own_micro_batches().empty()) {
    idle_steps_ = 0;
    return false;
  }
  ++idle_steps_;
  const bool doubled = idle_steps_ >= kFirstIdleTry && std::has_single_bit(static_cast<unsigned>(idle_steps_));
  return idle_steps_ % kLongestIdlePause == 0 || doubled;
}

void Balancing::computed(exec::Executor& executor, const comm::GradientBuckets& buckets) {
  const std::vector<double> seconds =
      try_idle() ? executor.try_micro_batches(1, buckets) : executor.micro_batch_seconds();
  measure_.micro_batches = seconds.size();
  measure_.compute = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  measure_.typical = median(seconds);
  measure_.data = executor.times().data_seconds - data_seconds_;
  data_seconds_ = executor.times().data_seconds;
  data_wait_ += measure_.data / workers_;
}

BalanceReport Balancing::report(const StepMeasure& step) {
  measure_.reduce = step.reduce;
  measure_.fixed = step.last_update;
  measure_.gpu = static_cast<double>(step.gpu);
  measure_.joules = step.joules.value_or(-1);
  return {balance::to_values(measure_), pending_ ? kAssignmentChanges : 0U};
}

// A cause is reported once, when it appears, and stays part of the evidence as long as it lasts.
void Balancing::note_gpus(const std::vector<balance::RankMeasure>& ranks) {
  gpu_causes_.resize(ranks.size());
  evidence_ = kThisRun;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const auto cause = static_cast<telemetry::GpuCause>(ranks[r].gpu);
    const bool is_new = cause != gpu_causes_[r];
    gpu_causes_[r] = cause;
    if (cause == telemetry::GpuCause::none) continue;
    const std::string what = cause == telemetry::GpuCause::co_tenant ? "has a co-tenant" : "is throttled";
    evidence_ += fmt::format("; the GPU of rank {} {}", r, what);
    if (!is_new) continue;
    run_.warn(
        fmt::format("the GPU of rank {} on {} {}, as its utilization, power and clocks "
                    "show; {}",
                    r, run_.communicator.topology().host_name(r), what,
                    is_automatic() ? "its micro-batches follow its speed"
                                   : "balance: auto would "
                                     "give it less to do"));
  }
}

bool Balancing::decide(const exec::StepSums& sums, std::int64_t step, double seconds) {
  std::vector<balance::RankMeasure> ranks;
  for (std::size_t at = 0; at < sums.rank_values.size(); at += balance::kMeasures) {
    ranks.push_back(balance::from_values(sums.rank_values.data() + at));
  }
  if (run_.leads()) note(ranks);
  const bool moves = (sums.flags & kAssignmentChanges) != 0;
  if (moves) {
    move(step);
  } else if (run_.leads()) {
    ask_balancers(ranks, step, seconds);
  }
  return moves;
}

void Balancing::note(const std::vector<balance::RankMeasure>& ranks) {
  waiting_->add(ranks);
  note_gpus(ranks);
  micro_batch_seconds_.assign(ranks.size(), -1);
  energy_.resize(ranks.size(), -1);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].joules >= 0) energy_[r] = ranks[r].joules;
    if (ranks[r].micro_batches > 0) micro_batch_seconds_[r] = ranks[r].compute / ranks[r].micro_batches;
  }
}

void Balancing::ask_balancers(const std::vector<balance::RankMeasure>& ranks, std::int64_t step, double seconds) {
  for (std::size_t part = 0; part < balancers_.size(); ++part) {
    if (!balancers_[part]) continue;
    merge(part, balancers_[part]->observe(parts_.of_part(part, counts_), parts_.of_part(part, ranks), seconds));
  }
  if (run_.options.balancer == nullptr) return;
  std::vector<RankLoad> loads;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    loads.push_back({.host = run_.communicator.topology().host_name(r),
                     .workers = workers_of_ranks_[r],
                     .micro_batches = counts_[r],
                     .seconds = ranks[r].compute});
  }
  std::vector<int> counts = run_.options.balancer->balance(step, loads);
  if (counts.empty() || counts == counts_) return;
  const bool positive = std::none_of(counts.begin(), counts.end(), [](int count) { return count < 0; });
  bool complete = counts.size() == counts_.size();
  for (std::size_t part = 0; complete && part < parts_.ranks().size(); ++part) {
    const std::vector<int> own = parts_.of_part(part, counts);
    complete = std::accumulate(own.begin(), own.end(), std::int64_t{0}) == run_.job.micro_batches;
  }
  if (!positive || !complete) {
    throw Error(ExitCode::usage,
                fmt::format("step {}: expected a balancer that gives {} micro-batches to {} ranks, found [{}]", step,
                            run_.job.micro_batches, counts_.size(), fmt::join(counts, ", ")));
  }
  pending_ = balance::Decision{};
  pending_->counts = std::move(counts);
  pending_->reason = "TrainerOptions::balancer";
  pending_->measured = seconds;
}

void Balancing::move(std::int64_t step) {
  if (pending_) counts_ = pending_->counts;
  run_.communicator.broadcast(std::as_writable_bytes(std::span(counts_)), 0,
                              {"micro-batch assignment", static_cast<std::uint64_t>(step), run_.timeout()});
  const std::vector<comm::MicroBatchAssignment> before = std::exchange(assignments_, assign_micro_batches());
  ++moves_;
  int moved = 0;
  for (std::size_t part = 0; part < before.size(); ++part) {
    moved += comm::micro_batches_moved(before[part], assignments_[part]);
  }
  if (pending_) emit(*pending_, moved, step);
  pending_.reset();
}

std::vector<int> Balancing::evaluation_counts(int micro_batches, std::vector<int> before, std::int64_t step) const {
  if (is_automatic()) {
    for (std::size_t part = 0; part < balancers_.size(); ++part) {
      if (balancers_[part])
        parts_.put_part(part, balancers_[part]->split(micro_batches, parts_.of_part(part, before)), before);
    }
    run_.communicator.broadcast(std::as_writable_bytes(std::span(before)), 0,
                                {"micro-batch assignment", static_cast<std::uint64_t>(step), run_.timeout()});
    return before;
  }
  std::vector<double> weights = weights_;
  if (run_.options.balancer != nullptr) weights.assign(counts_.begin(), counts_.end());
  return counts_by(weights, micro_batches);
}

void Balancing::emit(const balance::Decision& decision, int moved, std::int64_t step) const {
  events::Balance event{.step = step,
                        .reason = decision.reason,
                        .evidence = run_.options.balancer != nullptr ? decision.reason : evidence_,
                        .shares_by_rank = by_rank({decision.counts.begin(), decision.counts.end()}),
                        .micro_batches_moved = moved};
  if (!decision.seconds_per_micro_batch.empty()) {
    event.micro_batch_seconds_by_rank = by_rank(decision.seconds_per_micro_batch);
    // The decision has no values for parts that it does not change.
    if (parts_.is_cut())
      std::erase_if(*event.micro_batch_seconds_by_rank, [](const auto& rank) { return rank.second == 0; });
    event.reduce_seconds = decision.reduce_seconds;
    event.predicted_before_seconds = decision.predicted_before;
    event.predicted_seconds = decision.predicted;
  }
  if (decision.measured > 0) event.measured_seconds = decision.measured;
  run_.emit(event);
}

balance::Record Balancing::record() const {
  if (balancers_.empty() || parts_.is_cut()) return {};
  return {hosts(), workers_of_ranks_, balancers_.front()->seconds_per_micro_batch()};
}

}  // namespace lockstep::train
