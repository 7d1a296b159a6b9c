#include "tools/bench/scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "comm/reduce/micro_batch_assignment.hpp"
#include "core/spans.hpp"
#include "step/balance/balancer.hpp"

namespace lockstep::bench {

namespace {

constexpr double kMicroBatchSeconds = 0.01;
constexpr int kSlowEvery = 8;  ///< one rank in so many takes half as long again for a micro-batch
constexpr int kMaxSteps = 100;

struct BalanceScale {
  std::vector<int> counts;  ///< after the decision
  double seconds = 0;       ///< CPU time of the decision
};

std::vector<balance::RankMeasure> measures_of(const std::vector<int>& counts) {
  std::vector<balance::RankMeasure> measures;
  double longest = 0;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    const double seconds = rank % kSlowEvery == 0 ? 1.5 * kMicroBatchSeconds : kMicroBatchSeconds;
    balance::RankMeasure& measure = measures.emplace_back();
    measure.micro_batches = counts[rank];
    measure.typical = seconds;
    measure.compute = measure.micro_batches * seconds;
    longest = std::max(longest, measure.compute);
  }
  for (auto& measure : measures) measure.reduce = longest - measure.compute;
  return measures;
}

// Feeds the real balancer steps of such ranks until it decides.
BalanceScale measure_decision(const ScaleOptions& options, int ranks) {
  const int micro_batches = ranks * options.micro_batches_a_rank;
  const auto counts = comm::equal_counts(micro_batches, ranks);
  balance::Balancer balancer({.micro_batches = micro_batches,
                              .workers = std::vector<int>(counts.size(), 1),
                              .max_micro_batches = std::vector<int>(counts.size(), micro_batches)},
                             counts);
  const auto measures = measures_of(counts);
  const double step_seconds = 1.5 * kMicroBatchSeconds * options.micro_batches_a_rank;
  BalanceScale result{counts, 0};
  for (int step = 0; step < kMaxSteps; ++step) {
    const double start = thread_seconds();
    const auto decision = balancer.observe(counts, measures, step_seconds);
    result.seconds = std::max(result.seconds, thread_seconds() - start);
    if (!decision) continue;
    result.counts = decision->counts;
    break;
  }
  return result;
}

}  // namespace

ScaleRow measure_scale(const ScaleOptions& options, int ranks) {
  ScaleRow row{.ranks = ranks, .reduce = {}, .decision_seconds = 0, .turn = measure_supervisor_turn(ranks)};
  const BalanceScale balance = measure_decision(options, ranks);
  row.decision_seconds = balance.seconds;
  ScaleLoad load;
  load.reduce = {.elements = static_cast<std::int64_t>(options.gradient_bytes / sizeof(float)),
                 .micro_batches_a_rank = options.micro_batches_a_rank};
  for (int rank = 0; rank < ranks; ++rank) load.topology.host_of.push_back(rank / options.ranks_a_host);
  const int hosts = load.topology.host_of.back() + 1;
  for (int host = 0; host < hosts; ++host) load.topology.host_names.push_back(fmt::format("host-{}", host));
  load.counts = comm::equal_counts(ranks * options.micro_batches_a_rank, ranks);
  load.moved = balance.counts;
  row.reduce = measure_reduce_scale(load);
  return row;
}

}  // namespace lockstep::bench
