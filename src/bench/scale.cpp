#include "bench/scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "balance/balancer.hpp"
#include "comm/reduce/shard_assignment.hpp"
#include "core/spans.hpp"

namespace lockstep::bench {

namespace {

constexpr double kShardSeconds = 0.01;
constexpr int kSlowEvery = 8;  ///< one rank in so many takes half as long again for a shard
constexpr int kMaxSteps = 100;

struct BalanceScale {
  std::vector<int> counts;  ///< after the decision
  double seconds = 0;       ///< CPU time of the decision
};

std::vector<balance::RankMeasure> measures_of(const std::vector<int>& counts) {
  std::vector<balance::RankMeasure> measures;
  double longest = 0;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    const double seconds = rank % kSlowEvery == 0 ? 1.5 * kShardSeconds : kShardSeconds;
    balance::RankMeasure& measure = measures.emplace_back();
    measure.shards = counts[rank];
    measure.typical = seconds;
    measure.compute = measure.shards * seconds;
    longest = std::max(longest, measure.compute);
  }
  for (auto& measure : measures) measure.reduce = longest - measure.compute;
  return measures;
}

// Feeds the real balancer steps of such ranks until it decides.
BalanceScale measure_decision(const ScaleOptions& options, int ranks) {
  const int shards = ranks * options.shards_a_rank;
  const auto counts = comm::equal_counts(shards, ranks);
  balance::Balancer balancer({.shards = shards,
                              .workers = std::vector<int>(counts.size(), 1),
                              .max_shards = std::vector<int>(counts.size(), shards)},
                             counts);
  const auto measures = measures_of(counts);
  const double step_seconds = 1.5 * kShardSeconds * options.shards_a_rank;
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
                 .shards_a_rank = options.shards_a_rank};
  for (int rank = 0; rank < ranks; ++rank) load.topology.host_of.push_back(rank / options.ranks_a_host);
  const int hosts = load.topology.host_of.back() + 1;
  for (int host = 0; host < hosts; ++host) load.topology.host_names.push_back(fmt::format("host-{}", host));
  load.counts = comm::equal_counts(ranks * options.shards_a_rank, ranks);
  load.moved = balance.counts;
  row.reduce = measure_reduce_scale(load);
  return row;
}

}  // namespace lockstep::bench
