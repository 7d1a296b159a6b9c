// lockstep bench all-reduce: how long these ranks take to sum a gradient, compared with the library's own all-reduce.
// lockstep bench scale: what a step costs a rank among thousands; all hosts but one are simulated.
// lockstep bench goodput: what a long run on thousands of devices loses, simulated (goodput_bench.cpp).
// lockstep bench device: the rates of this machine's CPU, for `lockstep plan`.
// lockstep bench hosts: a report on the hosts of these ranks, with an exit code that says whether they are fit for a
// job.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "cli/all_reduce_bench.hpp"
#include "cli/commands.hpp"
#include "cli/device_bench.hpp"
#include "cli/goodput_bench.hpp"
#include "cli/host_report.hpp"
#include "cli/ranks.hpp"
#include "cli/scale_bench.hpp"
#include "cli/validators.hpp"
#include "device/threads.hpp"

namespace lockstep::cli {

namespace {

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
