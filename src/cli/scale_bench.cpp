#include "cli/scale_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "balance/balancer.hpp"
#include "cli/supervisor_turn.hpp"
#include "comm/reduce/reduce_scale.hpp"
#include "comm/reduce/shard_assignment.hpp"
#include "core/processor_time.hpp"
#include "lockstep/error.hpp"
#include "telemetry/text.hpp"

namespace lockstep::cli {

namespace {

constexpr int kFewestRanks = 16, kGrowth = 4;
constexpr double kShardSeconds = 0.01;
constexpr int kSlowEvery = 8;  ///< of so many ranks one takes half as long again for a shard
constexpr int kMaxSteps = 100;
constexpr std::int64_t kMaxShards = 1 << 20;

struct BalanceScale {
  std::vector<int> counts;  ///< decided
  double seconds = 0;       ///< of the processor, for the decision
};

struct ScaleRow {
  int ranks = 0;
  comm::ReduceScale reduce;
  double decision_seconds = 0;
  SupervisorTurn turn;
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
  for (auto& measure : measures) measure.exchange = longest - measure.compute;
  return measures;
}

// The real balancer hears of steps of such ranks until it decides.
BalanceScale measure_decision(const ScaleBenchOptions& options, int ranks) {
  const int shards = ranks * options.shards_a_rank;
  const auto counts = comm::equal_counts(shards, ranks);
  balance::Balancer balancer({.shards = shards,
                              .workers = std::vector<int>(counts.size(), 1),
                              .most_shards = std::vector<int>(counts.size(), shards)},
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

ScaleRow measure(const ScaleBenchOptions& options, int ranks) {
  ScaleRow row{.ranks = ranks, .reduce = {}, .decision_seconds = 0, .turn = measure_supervisor_turn(ranks)};
  const BalanceScale balance = measure_decision(options, ranks);
  row.decision_seconds = balance.seconds;
  comm::ScaleLoad load;
  load.reduce = {.elements = static_cast<std::int64_t>(options.gradient_bytes / sizeof(float)),
                 .shards_a_rank = options.shards_a_rank};
  for (int rank = 0; rank < ranks; ++rank) load.topology.host_of.push_back(rank / options.ranks_a_host);
  const int hosts = load.topology.host_of.back() + 1;
  for (int host = 0; host < hosts; ++host) load.topology.host_names.push_back(fmt::format("host-{}", host));
  load.counts = comm::equal_counts(ranks * options.shards_a_rank, ranks);
  load.moved = balance.counts;
  row.reduce = comm::measure_reduce_scale(load);
  return row;
}

void print_heading(const ScaleBenchOptions& options) {
  fmt::print(
      "The ranks of one host do what they would do among so many; the other hosts are simulated. {} ranks per host, {} "
      "shard{} per rank, a gradient of {}; times are processor time\n\n",
      options.ranks_a_host, options.shards_a_rank, options.shards_a_rank == 1 ? "" : "s",
      telemetry::byte_count(static_cast<double>(options.gradient_bytes)));
  fmt::print("{:>6}  {:^34}  {:^21}  {:^32}  {:>8}  {:>11}\n", "", "sent per step by the busiest rank", "", "of a rank",
             "balance", "supervisor");
  fmt::print("{:>6}  {:>9}  {:>7}  {:>14}  {:>10}  {:>9}  {:>9}  {:>9}  {:>10}  {:>8}  {:>11}\n", "ranks", "messages",
             "scalars", "to other hosts", "in memory", "memory", "plan", "begin", "advance", "decision", "turn");
}

void print_row(const ScaleRow& row) {
  using telemetry::byte_count;
  const auto& of = row.reduce;
  fmt::print(
      "{:>6}  {:>9}  {:>7}  {:>14}  {:>10}  {:>9}  {:>6.2f} ms  {:>6.2f} ms  {:>7.2f} us  {:>5.1f} ms  {:>8.2f} ms\n",
      row.ranks, of.messages, of.scalar_messages, byte_count(static_cast<double>(of.network_bytes)),
      byte_count(static_cast<double>(of.shared_memory_bytes)), byte_count(static_cast<double>(of.heap_bytes)),
      1e3 * of.plan_seconds, 1e3 * of.begin_seconds, 1e6 * of.advance_seconds, 1e3 * row.decision_seconds,
      1e3 * row.turn.seconds);
}

void print_scale_json(const ScaleRow& row) {
  nlohmann::ordered_json line;
  line["event"] = "scale";
  line["ranks"] = row.ranks;
  line["messages"] = row.reduce.messages;
  line["scalar_messages"] = row.reduce.scalar_messages;
  line["network_bytes"] = row.reduce.network_bytes;
  line["shared_memory_bytes"] = row.reduce.shared_memory_bytes;
  line["memory_bytes"] = row.reduce.heap_bytes;
  line["plan_seconds"] = row.reduce.plan_seconds;
  line["begin_seconds"] = row.reduce.begin_seconds;
  line["advance_seconds"] = row.reduce.advance_seconds;
  line["decision_seconds"] = row.decision_seconds;
  line["turn_seconds"] = row.turn.seconds;
  line["turn_beats"] = row.turn.beats;
  line["beat_seconds"] = row.turn.beat_seconds;
  fmt::print("{}\n", line.dump());
}

}  // namespace

int bench_scale(const ScaleBenchOptions& options) {
  if (std::int64_t{options.ranks} * options.shards_a_rank > kMaxShards) {
    throw Error(ExitCode::usage,
                fmt::format("bench scale: expected --ranks times --shards-a-rank to be at most {}, found "
                            "{} times {}; ask for fewer ranks or shards",
                            kMaxShards, options.ranks, options.shards_a_rank));
  }
  const bool people = options.log == "people";
  if (people) print_heading(options);
  for (int ranks = std::min(kFewestRanks, options.ranks);; ranks = std::min(kGrowth * ranks, options.ranks)) {
    const ScaleRow row = measure(options, ranks);
    people ? print_row(row) : print_scale_json(row);
    (void)std::fflush(stdout);
    if (ranks == options.ranks) return 0;
  }
}

}  // namespace lockstep::cli
