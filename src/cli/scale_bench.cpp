#include "cli/scale_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "lockstep/error.hpp"
#include "observe/telemetry/text.hpp"
#include "tools/bench/scale.hpp"

namespace lockstep::cli {

namespace {

constexpr int kFewestRanks = 16, kGrowth = 4;
constexpr std::int64_t kMaxMicroBatches = 1 << 20;

void print_heading(const ScaleBenchOptions& options) {
  fmt::print(
      "The ranks of one host do what they would do among so many; the other hosts are simulated. {} ranks per host, {} "
      "micro-batch{} per rank, a gradient of {}; times are processor time\n\n",
      options.ranks_a_host, options.micro_batches_a_rank, options.micro_batches_a_rank == 1 ? "" : "es",
      telemetry::byte_count(options.gradient_bytes));
  fmt::print("{:>6}  {:^34}  {:^21}  {:^32}  {:>8}  {:>11}\n", "", "sent per step by the busiest rank", "", "of a rank",
             "balance", "supervisor");
  fmt::print("{:>6}  {:>9}  {:>7}  {:>14}  {:>10}  {:>9}  {:>9}  {:>9}  {:>10}  {:>8}  {:>11}\n", "ranks", "messages",
             "scalars", "to other hosts", "in memory", "memory", "plan", "begin", "advance", "decision", "turn");
}

void print_row(const bench::ScaleRow& row) {
  using telemetry::byte_count;
  const auto& of = row.reduce;
  fmt::print(
      "{:>6}  {:>9}  {:>7}  {:>14}  {:>10}  {:>9}  {:>6.2f} ms  {:>6.2f} ms  {:>7.2f} us  {:>5.1f} ms  {:>8.2f} ms\n",
      row.ranks, of.messages, of.scalar_messages, byte_count(of.network_bytes), byte_count(of.shared_memory_bytes),
      byte_count(of.heap_bytes), 1e3 * of.plan_seconds, 1e3 * of.begin_seconds, 1e6 * of.advance_seconds,
      1e3 * row.decision_seconds, 1e3 * row.turn.seconds);
}

void print_scale_json(const bench::ScaleRow& row) {
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
  if (std::int64_t{options.ranks} * options.micro_batches_a_rank > kMaxMicroBatches) {
    throw Error(ExitCode::usage,
                fmt::format("bench scale: expected --ranks times --micro-batches-a-rank to be at most {}, found "
                            "{} times {}; ask for fewer ranks or micro-batches",
                            kMaxMicroBatches, options.ranks, options.micro_batches_a_rank));
  }
  const bool people = options.log == "people";
  if (people) print_heading(options);
  for (int ranks = std::min(kFewestRanks, options.ranks);; ranks = std::min(kGrowth * ranks, options.ranks)) {
    const bench::ScaleRow row = bench::measure_scale(options, ranks);
    people ? print_row(row) : print_scale_json(row);
    (void)std::fflush(stdout);
    if (ranks == options.ranks) return 0;
  }
}

}  // namespace lockstep::cli
