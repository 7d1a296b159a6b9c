// lockstep bench all-reduce: how long these ranks take to sum a gradient, compared with the library's own all-reduce.
// lockstep bench scale: what a step costs a rank among thousands; all hosts but one are simulated.
// lockstep bench goodput: what a long run on thousands of devices loses, simulated (goodput_bench.cpp).
// lockstep bench device: the rates of this machine's CPU, for `lockstep plan`.
// lockstep bench hosts: a report on the hosts of these ranks, with an exit code that says whether they are fit for a
// job.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/all_reduce_bench.hpp"
#include "cli/commands.hpp"
#include "cli/goodput_bench.hpp"
#include "cli/host_report.hpp"
#include "cli/ranks.hpp"
#include "cli/validators.hpp"
#include "core/files.hpp"
#include "core/median.hpp"
#include "core/spans.hpp"
#include "core/words.hpp"
#include "device/threads.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/error.hpp"
#include "lockstep/trainer.hpp"
#include "observe/telemetry/text.hpp"
#include "run/plan/limits.hpp"
#include "run/plan/measure.hpp"
#include "run/plan/profile.hpp"
#include "run/plan/report.hpp"
#include "step/exec/cpu_device.hpp"
#include "tools/bench/scale.hpp"

namespace lockstep::cli {

namespace {

// What `lockstep bench device` does.

struct DeviceBenchOptions {
  std::string out;  ///< path of the profile; empty: stdout
};

constexpr std::size_t kLongMessage = std::size_t{4} << 20;
constexpr int kShortRounds = 100, kLongRounds = 20;

/// One-way time of a message in seconds, between the first two ranks; 0 on others.
double message_seconds(Communicator& communicator, std::size_t bytes, int rounds) {
  const Operation operation{"messages", 0};
  communicator.barrier(operation);
  if (communicator.rank() > 1) return 0;
  const int other = 1 - communicator.rank();
  std::vector<std::byte> mine(bytes), theirs(bytes);
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    const auto come = communicator.receive(theirs, other, 1);
    if (communicator.rank() == 1) come->wait(operation);
    const auto sent = communicator.send(mine, other, 1);
    if (communicator.rank() == 0) come->wait(operation);
    sent->wait(operation);
    seconds.push_back(seconds_since(start) / 2);
  }
  return median(std::move(seconds));
}

void measure_messages(Communicator& communicator, plan::Rates& rates) {
  if (communicator.size() < 2) return;
  const double empty = message_seconds(communicator, sizeof(float), kShortRounds);
  const double whole = message_seconds(communicator, kLongMessage, kLongRounds);
  if (communicator.rank() > 1) return;
  rates.message_seconds = empty;
  rates.message_bytes = kLongMessage / std::max(whole - empty, 1e-9);
}

/// The median over the ranks of each rate that all ranks have measured.
plan::Rates typical(Communicator& communicator, plan::Rates rates) {
  const std::array<double*, 5> values = {&rates.matmul_flops, &rates.conv_flops, &rates.element_bytes, &rates.add_bytes,
                                         &rates.update_bytes};
  std::array<double, 5> mine{};
  for (std::size_t i = 0; i < mine.size(); ++i) mine.at(i) = *values.at(i);
  std::vector<double> all(mine.size() * communicator.size());
  communicator.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), {"rates", 0});
  for (std::size_t i = 0; i < mine.size(); ++i) {
    std::vector<double> of_ranks;
    for (std::size_t at = i; at < all.size(); at += mine.size()) of_ranks.push_back(all[at]);
    *values.at(i) = median(std::move(of_ranks));
  }
  return rates;
}

void print_rates(const plan::Rates& rates, int ranks) {
  fmt::print("{}, {}, {}; {} measured at once, one thread each\n", rates.device,
             telemetry::counted(rates.cores, "core"), plan::size_text(rates.memory), telemetry::counted(ranks, "rank"));
  const auto bytes = [](double value) { return byte_count(value) + "/s"; };
  fmt::print("{}", plan::table_text({{"matrix products", fmt::format("{:.1f} GFLOP/s", 1e-9 * rates.matmul_flops)},
                                     {"convolutions", fmt::format("{:.1f} GFLOP/s", 1e-9 * rates.conv_flops)},
                                     {"elementwise kernels", bytes(rates.element_bytes)},
                                     {"adding gradients", bytes(rates.add_bytes)},
                                     {"updates (AdamW)", bytes(rates.update_bytes)},
                                     {"a message", fmt::format("{:.1f} us", 1e6 * rates.message_seconds)},
                                     {"long messages", bytes(rates.message_bytes)}}));
  if (ranks == 1) fmt::print("  one rank sends nobody messages: those two are assumed\n");
}

/// All ranks measure the rates of their CPUs at the same time, with one thread each, and the first two send each other
/// messages. The first one prints the rates and writes the profile: the median over the ranks. Throws
/// Error(cannot_create) if the file cannot be written.
int bench_device(Communicator& communicator, const DeviceBenchOptions& options) {
  const Registries registries = Registries::built_in();
  const exec::CpuDevice device;
  communicator.barrier({"rates", 0});
  plan::Rates rates = plan::measure_rates(device, registries.ops, registries.models, registries.optimizers, 1);
  rates = typical(communicator, rates);
  measure_messages(communicator, rates);
  if (communicator.rank() != 0) return 0;
  rates.memory = plan::memory_of_host();
  rates.cores = device::available_cores();
  print_rates(rates, communicator.size());
  if (options.out.empty()) return 0;
  const std::string failure = try_write_whole_file(options.out, plan::profile_text(rates));
  if (failure.empty()) return 0;
  throw Error(ExitCode::cannot_create, fmt::format("--out: cannot write '{}': {}; give a path in a folder that can be "
                                                   "written to",
                                                   options.out, failure));
}

// What `lockstep bench scale` does.

struct ScaleBenchOptions : bench::ScaleOptions {
  std::string log = "people";
};

constexpr int kFewestRanks = 16, kGrowth = 4;
constexpr std::int64_t kMaxMicroBatches = 1 << 20;

void print_heading(const ScaleBenchOptions& options) {
  fmt::print(
      "The ranks of one host do what they would do among so many; the other hosts are simulated. {} ranks per host, {} "
      "micro-batch{} per rank, a gradient of {}; times are processor time\n\n",
      options.ranks_a_host, options.micro_batches_a_rank, options.micro_batches_a_rank == 1 ? "" : "es",
      byte_count(options.gradient_bytes));
  fmt::print("{:>6}  {:^34}  {:^21}  {:^32}  {:>8}  {:>11}\n", "", "sent per step by the busiest rank", "", "of a rank",
             "balance", "supervisor");
  fmt::print("{:>6}  {:>9}  {:>7}  {:>14}  {:>10}  {:>9}  {:>9}  {:>9}  {:>10}  {:>8}  {:>11}\n", "ranks", "messages",
             "scalars", "to other hosts", "in memory", "memory", "plan", "begin", "advance", "decision", "turn");
}

void print_row(const bench::ScaleRow& row) {
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

/// Prints rows for 16 ranks, four times as many, ... up to `ranks`. Throws as bench::measure_scale() does.
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

struct BenchArguments : AllReduceBenchOptions {
  RankOptions ranks;
};

struct HostArguments : HostLimits {
  RankOptions ranks;
  std::string device = "cpu";
  std::string exact = "required";
  double min_gigabytes = 0;  ///< per second
};

/// "64KiB" -> "65536"
CLI::Validator gradient_size() {
  return {[](std::string& found) {
            const std::string word = found;
            const std::string problem = CLI::AsSizeValue(false)(found);
            if (problem.empty() && std::stoull(found) >= sizeof(float)) return std::string();
            return fmt::format("expected bytes, at least {}, such as 65536 or 64KiB, found '{}'", sizeof(float), word);
          },
          "SIZE", "gradient size"};
}

/// A job from which --ranks auto derives the number of ranks.
Job job_on_device(const std::string& device) {
  Job job;
  job.device = value_of<DeviceChoice>(device);
  job.micro_batches =
      std::numeric_limits<std::int32_t>::max();  // auto starts at most one rank per micro-batch: no limit here
  return job;
}

void add_all_reduce(CLI::App& bench, Action& run) {
  CLI::App* all_reduce = bench.add_subcommand(
      "all-reduce", "Time lockstep's all-reduce of the gradient and, beside it, that of MPI or NCCL.");
  all_reduce->footer(
      "Examples:\n  lockstep bench all-reduce --ranks 2\n"
      "  mpirun -n 8 --hostfile hosts lockstep bench all-reduce --sizes 1MiB,256MiB --picture all-reduce.svg");
  auto arguments = std::make_shared<BenchArguments>();
  arguments->ranks.add_to(*all_reduce);
  all_reduce->add_option("--sizes", arguments->sizes, "sizes of the gradient in bytes: 4KiB,1MiB")
      ->delimiter(',')
      ->transform(gradient_size())
      ->default_str("4KiB,64KiB,1MiB,16MiB,64MiB");
  all_reduce->add_option("--rounds", arguments->rounds, "timed rounds for each size")
      ->check(at_least(1))
      ->capture_default_str();
  all_reduce
      ->add_option("--micro-batches-a-rank", arguments->micro_batches_a_rank,
                   "micro-batches of each rank; of 1, 2, 4, ... a rank sends one partial sum, of others several")
      ->check(at_least(1))
      ->capture_default_str();
  all_reduce->add_option("--device", arguments->device, "cpu, or cuda: between the ranks' GPUs, over NCCL")
      ->check(one_of({"cpu", "cuda"}))
      ->capture_default_str();
  all_reduce->add_option("--picture", arguments->picture, "write a chart of the bandwidths as SVG");
  all_reduce->add_option("--log", arguments->log, "people, or json: one line per size and algorithm on stdout")
      ->check(one_of({"people", "json"}))
      ->capture_default_str();
  all_reduce->callback([&run, arguments] {
    run = [arguments] {
      return run_on_ranks(
          arguments->ranks, [&](Communicator& communicator) { return bench_all_reduce(communicator, *arguments); },
          automatic_ranks(job_on_device(arguments->device)));
    };
  });
}

int run_hosts(HostArguments& arguments) {
  arguments.one_kind = arguments.exact == name_of(Exactness::required);
  arguments.bytes_per_second = 1e9 * arguments.min_gigabytes;
  return run_on_ranks(
      arguments.ranks,
      [&](Communicator& communicator) { return report_hosts(communicator, arguments, arguments.device); },
      automatic_ranks(job_on_device(arguments.device)));
}

void add_hosts(CLI::App& bench, Action& run) {
  CLI::App* hosts = bench.add_subcommand("hosts",
                                         "Report the device of each rank, the speed of the gradient's all-reduce and "
                                         "how far the hosts' clocks are apart.");
  hosts->footer(
      "Examples:\n  lockstep bench hosts --ranks 2\n"
      "  mpirun -n 8 --hostfile hosts lockstep bench hosts --min-bandwidth 5");
  auto arguments = std::make_shared<HostArguments>();
  arguments->ranks.add_to(*hosts);
  hosts
      ->add_option("--exact", arguments->exact,
                   "as in the job; with required, ranks on different kinds of device are an error")
      ->check(one_of({"required", "preferred", "never"}))
      ->capture_default_str();
  hosts->add_option("--device", arguments->device, "as in the job: cpu, or cuda, one GPU per rank")
      ->check(one_of({"cpu", "cuda"}))
      ->capture_default_str();
  hosts->add_option("--max-skew", arguments->clock_seconds, "seconds that the hosts' clocks may be apart")
      ->check(at_least(0))
      ->capture_default_str();
  hosts->add_option("--min-bandwidth", arguments->min_gigabytes, "GB/s that the all-reduce must reach")
      ->check(at_least(0))
      ->capture_default_str();
  hosts->callback([&run, arguments] { run = [arguments] { return run_hosts(*arguments); }; });
}

void add_scale(CLI::App& bench, Action& run) {
  CLI::App* scale = bench.add_subcommand("scale",
                                         "Measure what a step costs one of up to thousands of ranks; all hosts but one "
                                         "are simulated: no MPI, no network.");
  scale->footer(
      "Examples:\n  lockstep bench scale\n  lockstep bench scale --ranks 1024 --gradient 1GiB --ranks-a-host 4");
  auto arguments = std::make_shared<ScaleBenchOptions>();
  scale->add_option("--ranks", arguments->ranks, "the largest number of ranks; it is measured from 16 up to it")
      ->check(at_least(1))
      ->capture_default_str();
  scale->add_option("--ranks-a-host", arguments->ranks_a_host, "ranks of a host; here they are threads")
      ->check(at_least(1))
      ->capture_default_str();
  scale->add_option("--micro-batches-a-rank", arguments->micro_batches_a_rank, "of a step")
      ->check(at_least(1))
      ->capture_default_str();
  scale->add_option("--gradient", arguments->gradient_bytes, "size of the gradient in bytes: 25MiB, 1GiB")
      ->transform(gradient_size())
      ->default_str("100MiB");
  scale->add_option("--log", arguments->log, "people, or json: one line per row on stdout")
      ->check(one_of({"people", "json"}))
      ->capture_default_str();
  scale->callback([&run, arguments] { run = [arguments] { return bench_scale(*arguments); }; });
}

struct DeviceArguments : DeviceBenchOptions {
  RankOptions ranks;
};

void add_device(CLI::App& bench, Action& run) {
  CLI::App* device = bench.add_subcommand(
      "device", "Measure what this machine's CPU does in a second, for `lockstep plan --profile`.");
  device->footer("Examples:\n  lockstep bench device --out here.json\n  lockstep plan job.yaml --profile here.json");
  auto arguments = std::make_shared<DeviceArguments>();
  arguments->ranks.ranks = "auto";
  device
      ->add_option("--ranks", arguments->ranks.ranks,
                   "ranks that measure at once; auto: as many as there are cores for this process")
      ->capture_default_str();
  device->add_option("--out", arguments->out, "also write them as a profile, a JSON file");
  device->callback([&run, arguments] {
    run = [arguments] {
      return run_on_ranks(
          arguments->ranks, [&](Communicator& communicator) { return bench_device(communicator, *arguments); },
          device::available_cores());
    };
  });
}

}  // namespace

void add_bench(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand("bench", "Benchmark what training needs of this machine or cluster.");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n  lockstep bench all-reduce --ranks 2\n  lockstep bench hosts --ranks 2\n  lockstep bench scale\n"
      "  lockstep bench goodput");
  add_all_reduce(*command, run);
  add_device(*command, run);
  add_hosts(*command, run);
  add_scale(*command, run);
  add_goodput(*command, run);
}

}  // namespace lockstep::cli
