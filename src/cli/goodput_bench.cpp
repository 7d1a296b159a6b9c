#include "cli/goodput_bench.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "cli/validators.hpp"
#include "core/files.hpp"
#include "core/numbers.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/text.hpp"
#include "tools/bench/checkpoint_interval.hpp"
#include "tools/bench/goodput_sweep.hpp"
#include "tools/bench/network_tiers.hpp"

namespace lockstep::cli {

namespace {

// What `lockstep bench goodput` prints.

struct GoodputReport {
  bench::GoodputSetup setup;  ///< with the requested interval
  int seeds = 1;
  double young_daly_seconds = 0;                 ///< infinity: nothing fails
  std::vector<bench::GoodputSummary> summaries;  ///< by interval, the shortest first; setup's interval is one of them
};

using bench::GoodputSummary;
using bench::GoodputTimes;
using telemetry::counted;
using telemetry::duration;

constexpr double kSecondsADay = 86'400;

struct TimeRow {
  double GoodputTimes::*seconds;
  const char* key;
  const char* words;
};

constexpr TimeRow kTimeRows[] = {
    {&GoodputTimes::steps, "steps", "steps: useful"},
    {&GoodputTimes::reduction, "reduction", "exposed all-reduce"},
    {&GoodputTimes::stragglers, "stragglers", "slow devices"},
    {&GoodputTimes::missing_hosts, "missing_hosts", "fewer hosts"},
    {&GoodputTimes::checkpoints, "checkpoints", "checkpoints"},
    {&GoodputTimes::lost_work, "lost_work", "lost work"},
    {&GoodputTimes::restarts, "restarts", "restarts"},
    {&GoodputTimes::awaiting_hosts, "awaiting_hosts", "waiting for hosts"},
};

/// "45.3 s", "1:02:03", "11.6 days"
std::string time_length(double seconds) {
  return seconds < 2 * kSecondsADay ? duration(seconds) : fmt::format("{:.1f} days", seconds / kSecondsADay);
}

double interval_seconds(const GoodputReport& report, const GoodputSummary& summary) {
  return summary.every_steps * (report.setup.step_seconds + report.setup.exposed_seconds);
}

void print_setup(const GoodputReport& report) {
  const bench::GoodputSetup& setup = report.setup;
  const double mtbf = setup.failures.device_mtbf_seconds;
  fmt::print("Simulated: {} on {}, {} of {}; {}; {} from {}\n", counted(setup.devices, "device"),
             counted(setup.devices / setup.devices_a_host, "host"), counted(setup.steps, "step"),
             duration(setup.step_seconds + setup.exposed_seconds),
             mtbf > 0 ? fmt::format("one fails every {}", time_length(mtbf / setup.devices)) : "none fails",
             counted(report.seeds, "seed"), setup.seed);
}

void print_interval(const GoodputReport& report, const GoodputSummary& of) {
  const double wall = of.wall_seconds.mean;
  fmt::print("\ncheckpoint   every {}, {}\n", time_length(interval_seconds(report, of)),
             counted(of.every_steps, "step"));
  fmt::print("goodput      {:.2f} %, std {:.2f}, from {:.2f} to {:.2f}\n", 100 * of.goodput.mean, 100 * of.goodput.std,
             100 * of.goodput.min, 100 * of.goodput.max);
  fmt::print("time         {}, std {}\n", time_length(wall), time_length(of.wall_seconds.std));
  fmt::print("failures     {:.1f}, from {:.0f} to {:.0f}\n\n", of.failures.mean, of.failures.min, of.failures.max);
  for (const TimeRow& row : kTimeRows) {
    const double seconds = of.mean_times.*row.seconds;
    if (seconds > 0) fmt::print("  {:<20} {:>6.2f} %  {:>10}\n", row.words, 100 * seconds / wall, time_length(seconds));
  }
}

void print_intervals(const GoodputReport& report) {
  const std::size_t best = bench::best_of(report.summaries);
  fmt::print("\n{:>10}  {:>10}  {:>9}  {:>9}  {:>17}\n", "checkpoint", "steps", "goodput", "std", "from, to");
  for (std::size_t i = 0; i < report.summaries.size(); ++i) {
    const GoodputSummary& of = report.summaries[i];
    fmt::print("{:>10}  {:>10}  {:>7.2f} %  {:>9.2f}  {:>8.2f} {:>8.2f}{}{}\n",
               time_length(interval_seconds(report, of)), telemetry::grouped(of.every_steps), 100 * of.goodput.mean,
               100 * of.goodput.std, 100 * of.goodput.min, 100 * of.goodput.max, i == best ? "  best" : "",
               of.unfinished > 0 ? fmt::format("  {} given up", counted(of.unfinished, "run")) : "");
  }
  if (std::isfinite(report.young_daly_seconds))
    fmt::print("\nYoung/Daly: every {}\n", time_length(report.young_daly_seconds));
}

nlohmann::ordered_json spread_json(const bench::Spread& spread) {
  return {{"mean", spread.mean}, {"std", spread.std}, {"min", spread.min}, {"max", spread.max}};
}

void print_goodput(const GoodputReport& report) {
  const std::int64_t every = report.setup.checkpoints.every_steps;
  print_setup(report);
  const auto asked = std::find_if(report.summaries.begin(), report.summaries.end(),
                                  [every](const GoodputSummary& summary) { return summary.every_steps == every; });
  print_interval(report, *asked);
  if (report.summaries.size() > 1) print_intervals(report);
}

/// Prints one line for each interval.
void print_goodput_json(const GoodputReport& report) {
  const std::size_t best = bench::best_of(report.summaries);
  for (std::size_t i = 0; i < report.summaries.size(); ++i) {
    const GoodputSummary& of = report.summaries[i];
    nlohmann::ordered_json line;
    line["event"] = "goodput";
    line["devices"] = report.setup.devices;
    line["steps"] = report.setup.steps;
    line["step_seconds"] = report.setup.step_seconds;
    line["exposed_seconds"] = report.setup.exposed_seconds;
    line["checkpoint_every_steps"] = of.every_steps;
    line["checkpoint_every_seconds"] = interval_seconds(report, of);
    line["best"] = i == best;
    line["young_daly_seconds"] = report.young_daly_seconds;  // JSON null if nothing fails
    line["seeds"] = report.seeds;
    line["goodput"] = spread_json(of.goodput);
    line["wall_seconds"] = spread_json(of.wall_seconds);
    line["failures"] = spread_json(of.failures);
    for (const TimeRow& row : kTimeRows) line["seconds"][row.key] = of.mean_times.*row.seconds;
    line["unfinished"] = of.unfinished;
    line["simulated_events"] = of.events;
    fmt::print("{}\n", line.dump());
  }
}

constexpr double kSecondsAnHour = 3600, kGiga = 1e9, kMicro = 1e-6;

/// In the units of the command line: hours, minutes, GB/s or microseconds if an option's name or help says so.
struct GoodputArguments {
  bench::GoodputSetup setup{.devices = 1024,
                            .steps = 100'000,
                            .step_seconds = 10,
                            .micro_batches_a_device = 8,
                            .checkpoints = {.blocked_seconds = 5, .safe_seconds = 60},
                            .restarts = {.detection_seconds = 60, .start_seconds = 120, .reload_seconds = 60},
                            .stragglers = {.factor = 1.5}};
  double mtbf_hours = 50'000, repair_hours = 24, slow_minutes = 30;
  std::string lost_hosts = "replaced", balanced = "true", log = "people";
  double interval_seconds = 0;  ///< 0: the Young/Daly interval
  std::vector<double> intervals;
  int seeds = 10;
  std::string plan;  ///< a file; empty: none

  double gradient_bytes = 0, bucket_bytes = 1 << 20;
  int hosts_a_pod = 0;
  // A GPU of an H100 host as NCCL's ring uses it, and one 400 Gb/s link for each of eight GPUs; the latencies are those
  // of NCCL's own model for NVLink and a network.
  double device_bandwidth = 370, host_bandwidth = 400, pod_bandwidth = 400;
  double device_latency = 3.4, host_latency = 9.6, pod_latency = 9.6;
  std::string all_reduce = "direct";
  double hidden_share = 0.6;
};

/// A finite number in [least, most], or in (least, most] if `above`.
CLI::Validator number_of(double least, bool above = false, double most = HUGE_VAL) {
  std::string wanted = fmt::format("{} {}", above ? "above" : "of at least", least);
  if (std::isfinite(most)) wanted += fmt::format(" and at most {}", most);
  return {[=](std::string& found) {
            const double value = number_from<double>(found).value_or(std::nan(""));
            const bool in_range = value <= most && (above ? value > least : value >= least);
            if (std::isfinite(value) && in_range) return std::string();
            return fmt::format("expected a number {}, found '{}'", wanted, found);
          },
          std::isfinite(most) ? fmt::format("{}-{}", least, most) : fmt::format("{}{}", above ? ">" : ">=", least)};
}

/// "1GiB" -> "1073741824"
CLI::Validator byte_size() {
  return {[](std::string& found) {
            const std::string word = found;
            try {
              if (CLI::AsSizeValue(false)(found).empty()) return std::string();
            } catch (const CLI::ValidationError&) {  // its message is replaced by the one below
            }
            return fmt::format("expected bytes, such as 65536 or 64KiB, found '{}'", word);
          },
          "SIZE", "bytes"};
}

template <class T>
CLI::Option* add_checked(CLI::App& command, const std::string& name, T& value, const CLI::Validator& check,
                         const std::string& help) {
  return command.add_option(name, value, help)->check(check)->capture_default_str();
}

void add_job(CLI::App& command, GoodputArguments& of) {
  command.add_option("--plan", of.plan, "devices and seconds of a step as a file of `lockstep plan --json` has them");
  add_checked(command, "--devices", of.setup.devices, at_least(1), "devices, a rank for each");
  add_checked(command, "--devices-a-host", of.setup.devices_a_host, at_least(1),
              "devices of a host; a failed one takes its host away");
  add_checked(command, "--steps", of.setup.steps, at_least(1), "steps of the run");
  add_checked(command, "--step-seconds", of.setup.step_seconds, number_of(0, true),
              "of a step, without what is exposed of the all-reduce");
  add_checked(command, "--seed", of.setup.seed, at_least(0), "the first seed");
  add_checked(command, "--seeds", of.seeds, at_least(1), "runs, each with its own seed");
  add_checked(command, "--log", of.log, one_of({"people", "json"}), "people, or json: one line per interval on stdout");
}

void add_faults(CLI::App& command, GoodputArguments& of) {
  add_checked(command, "--mtbf-hours", of.mtbf_hours, number_of(0),
              "mean time between failures of one device; 0: none fails");
  add_checked(command, "--detection-seconds", of.setup.restarts.detection_seconds, number_of(0),
              "until a failure is noticed");
  add_checked(command, "--restart-seconds", of.setup.restarts.start_seconds, number_of(0),
              "until all ranks have started again");
  add_checked(command, "--reload-seconds", of.setup.restarts.reload_seconds, number_of(0),
              "until they have read the checkpoint");
  add_checked(command, "--lost-hosts", of.lost_hosts, one_of({"replaced", "awaited", "left-out"}),
              "what happens when no spare host is left: there always is one, the job waits, or it goes on with fewer");
  add_checked(command, "--spare-hosts", of.setup.failures.spare_hosts, at_least(0), "hosts beside those of the job");
  add_checked(command, "--repair-hours", of.repair_hours, number_of(0, true), "until a lost host is a spare one");
  add_checked(command, "--slow-share", of.setup.stragglers.share, number_of(0, false, 0.99),
              "of the devices, slow at any time");
  add_checked(command, "--slow-factor", of.setup.stragglers.factor, number_of(1),
              "a slow device takes so many times as long");
  add_checked(command, "--slow-minutes", of.slow_minutes, number_of(0, true), "for which a device stays slow");
  add_checked(command, "--balanced", of.balanced, one_of({"true", "false"}),
              "move micro-batches away from slow devices");
  add_checked(command, "--micro-batches-a-device", of.setup.micro_batches_a_device, at_least(0),
              "of a step; no micro-batch is divided; 0: as fine as needed");
}

void add_checkpoints(CLI::App& command, GoodputArguments& of) {
  add_checked(command, "--checkpoint-seconds", of.setup.checkpoints.blocked_seconds, number_of(0),
              "for which a checkpoint stops training");
  add_checked(command, "--safe-seconds", of.setup.checkpoints.safe_seconds, number_of(0),
              "from then on until it is safe");
  add_checked(command, "--interval-seconds", of.interval_seconds, number_of(0, true),
              "of steps between two checkpoints")
      ->default_str("Young/Daly's");
  add_checked(command, "--intervals", of.intervals, number_of(0, true), "seconds, to compare: 60,300,1800")
      ->delimiter(',')
      ->default_str("1/8 to 8 times Young/Daly's");
}

void add_network(CLI::App& command, GoodputArguments& of) {
  command.add_option("--gradient", of.gradient_bytes, "bytes that are reduced over all devices in a step: 25MiB, 1GiB")
      ->transform(byte_size())
      ->default_str("0");
  command.add_option("--bucket", of.bucket_bytes, "bytes of the last bucket, which nothing hides")
      ->transform(byte_size())
      ->default_str("1MiB");
  add_checked(command, "--hidden-share", of.hidden_share, number_of(0, false, 1),
              "of the step, behind which the reduction can hide");
  add_checked(command, "--all-reduce", of.all_reduce, one_of({"direct", "ring"}),
              "a round in each tier, or one for each neighbour");
  add_checked(command, "--hosts-a-pod", of.hosts_a_pod, at_least(0), "hosts of a rack or pod; 0: there are no pods");
  add_checked(command, "--device-bandwidth", of.device_bandwidth, number_of(0, true),
              "GB/s of a device inside its host");
  add_checked(command, "--host-bandwidth", of.host_bandwidth, number_of(0, true), "GB/s of a host inside its pod");
  add_checked(command, "--pod-bandwidth", of.pod_bandwidth, number_of(0, true), "GB/s of a host between pods");
  add_checked(command, "--device-latency", of.device_latency, number_of(0), "microseconds of a round inside a host");
  add_checked(command, "--host-latency", of.host_latency, number_of(0), "microseconds of a round inside a pod");
  add_checked(command, "--pod-latency", of.pod_latency, number_of(0), "microseconds of a round between pods");
}

double exposed_of(const GoodputArguments& of) {
  if (of.gradient_bytes == 0) return 0;
  const auto tiers = bench::tiers_of(
      {.devices = of.setup.devices, .devices_a_host = of.setup.devices_a_host, .hosts_a_pod = of.hosts_a_pod},
      {.device_bytes_per_second = kGiga * of.device_bandwidth,
       .host_bytes_per_second = kGiga * of.host_bandwidth,
       .pod_bytes_per_second = kGiga * of.pod_bandwidth,
       .device_latency = kMicro * of.device_latency,
       .host_latency = kMicro * of.host_latency,
       .pod_latency = kMicro * of.pod_latency});
  return bench::exposed_seconds(tiers, of.gradient_bytes, of.bucket_bytes, of.hidden_share * of.setup.step_seconds,
                                of.all_reduce == "ring" ? bench::AllReduceKind::ring : bench::AllReduceKind::direct);
}

void check_goodput(const GoodputArguments& of, bool host_options) {
  const bench::GoodputSetup& setup = of.setup;
  if (setup.devices > setup.devices_a_host && setup.devices % setup.devices_a_host != 0) {
    throw Error(ExitCode::usage, fmt::format("bench goodput: expected --devices to be a multiple of --devices-a-host, "
                                             "found {} and {}; hosts are all alike",
                                             setup.devices, setup.devices_a_host));
  }
  if (host_options && of.lost_hosts == "replaced") {
    throw Error(ExitCode::usage,
                "bench goodput: expected --lost-hosts awaited or left-out with --spare-hosts or --repair-hours, found "
                "replaced, with which there is always a spare host");
  }
}

bench::LostHost lost_host_of(const std::string& word) {
  if (word == "awaited") return bench::LostHost::awaited;
  return word == "left-out" ? bench::LostHost::left_out : bench::LostHost::replaced;
}

bench::GoodputSetup setup_of(const GoodputArguments& of) {
  bench::GoodputSetup setup = of.setup;
  setup.devices_a_host = std::min(setup.devices, setup.devices_a_host);
  setup.balanced = of.balanced == "true";
  setup.exposed_seconds = exposed_of(of);
  setup.failures.device_mtbf_seconds = kSecondsAnHour * of.mtbf_hours;
  setup.failures.repair_seconds = kSecondsAnHour * of.repair_hours;
  setup.failures.lost_host = lost_host_of(of.lost_hosts);
  setup.stragglers.seconds = 60 * of.slow_minutes;
  return setup;
}

/// Ranks and seconds of a step as `lockstep plan --json` predicts them, where the command line does not say them.
void take_plan(GoodputArguments& of, bool has_devices, bool has_seconds) {
  if (of.plan.empty()) return;
  const auto text = read_whole_file(of.plan);
  const auto json = nlohmann::json::parse(text.value_or(""), nullptr, false);
  const bool is_plan = json.is_object() && json.contains("ranks") && json["ranks"].is_number_integer() &&
                       json.contains("placement") && json["placement"].is_object() &&
                       json["placement"].contains("step_seconds") && json["placement"]["step_seconds"].is_number();
  if (!is_plan || json["ranks"].get<int>() < 1 || !(json["placement"]["step_seconds"].get<double>() > 0)) {
    throw Error(text ? ExitCode::data : ExitCode::usage,
                fmt::format("--plan: expected a file of `lockstep plan --json`, found {} at {}",
                            text ? "something else" : "none", of.plan));
  }
  if (!has_devices) of.setup.devices = json["ranks"].get<int>();
  if (!has_seconds) of.setup.step_seconds = json["placement"]["step_seconds"].get<double>();
}

int bench_goodput(const GoodputArguments& of, bool host_options) {
  check_goodput(of, host_options);
  GoodputReport report{.setup = setup_of(of), .seeds = of.seeds};
  bench::GoodputSetup& setup = report.setup;
  const auto every_steps = [&setup](double seconds) {
    const double steps = std::round(seconds / (setup.step_seconds + setup.exposed_seconds));
    return static_cast<std::int64_t>(std::clamp(steps, 1.0, static_cast<double>(setup.steps)));
  };
  report.young_daly_seconds =
      bench::young_daly_interval(setup.checkpoints.blocked_seconds, setup.failures.device_mtbf_seconds / setup.devices);
  std::vector<double> seconds = of.intervals;
  if (seconds.empty()) {
    for (const double factor : {0.125, 0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0, 8.0})
      seconds.push_back(factor * report.young_daly_seconds);
  }
  setup.checkpoints.every_steps =
      every_steps(of.interval_seconds > 0 ? of.interval_seconds : report.young_daly_seconds);
  std::vector<std::int64_t> intervals = {setup.checkpoints.every_steps};
  for (const double interval : seconds) intervals.push_back(every_steps(interval));
  std::sort(intervals.begin(), intervals.end());
  intervals.erase(std::unique(intervals.begin(), intervals.end()), intervals.end());
  report.summaries = bench::simulate_intervals(setup, intervals, of.seeds);
  of.log == "json" ? print_goodput_json(report) : print_goodput(report);
  return 0;
}

}  // namespace

void add_goodput(CLI::App& bench, Action& run) {
  CLI::App* command = bench.add_subcommand(
      "goodput",
      "Simulate a long run on thousands of devices with failures, checkpoints, restarts and slow devices: how much of "
      "its time is useful, what takes the rest, and how often to write a checkpoint.");
  command->footer(
      "Examples:\n  lockstep bench goodput --devices 16384 --steps 400000\n"
      "  lockstep bench goodput --devices 512 --lost-hosts left-out --spare-hosts 2 --slow-share 0.001\n"
      "  lockstep bench goodput --gradient 10GiB --hosts-a-pod 16 --pod-bandwidth 100");
  auto arguments = std::make_shared<GoodputArguments>();
  add_job(*command, *arguments);
  add_faults(*command, *arguments);
  add_checkpoints(*command, *arguments);
  add_network(*command, *arguments);
  command->callback([&run, arguments, command] {
    const bool host_options = command->count("--spare-hosts") + command->count("--repair-hours") > 0;
    const bool has_devices = command->count("--devices") > 0, has_seconds = command->count("--step-seconds") > 0;
    run = [arguments, host_options, has_devices, has_seconds] {
      take_plan(*arguments, has_devices, has_seconds);
      return bench_goodput(*arguments, host_options);
    };
  });
}

}  // namespace lockstep::cli
