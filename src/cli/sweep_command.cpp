// lockstep sweep: a search over the settings of a job.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/commands.hpp"
#include "cli/job_argument.hpp"
#include "cli/ranks.hpp"
#include "cli/trial_places.hpp"
#include "cli/validators.hpp"
#include "config/sweep.hpp"
#include "core/say.hpp"
#include "device/threads.hpp"
#include "launch/allocation.hpp"
#include "launch/child.hpp"
#include "launch/hosts.hpp"
#include "lockstep/error.hpp"
#include "run/train/catalogue.hpp"
#include "tools/sweep/method.hpp"
#include "tools/sweep/sweep.hpp"

namespace lockstep::cli {

namespace {

struct SweepArguments {
  std::vector<std::string> words;
  std::string ranks = "auto", directory, log = "people", hosts, hostfile, agent = "ssh";
  sweep::SweepRunOptions options;
};

config::SweepFile load(const SweepArguments& arguments, const FileAndOverrides& words, const Registries& registries,
                       const config::Catalogue& catalogue) {
  const auto& [file, overrides] = words;
  config::SweepFile sweep = config::load_sweep(file, overrides, catalogue, true);
  if (!arguments.directory.empty()) sweep.directory = arguments.directory;
  if (sweep.direction == Direction::automatic) sweep.direction = better_direction(sweep.metric, registries);
  return sweep;
}

/// Settings that no trial could have are reported before any trial starts.
void check_first_trials(const config::SweepFile& sweep, const config::Catalogue& catalogue) {
  constexpr int kTried = 20;
  for (int trial = 0; trial < kTried; ++trial) {
    (void)config::load_trial(sweep, sweep::overrides(sweep::random_settings(sweep, trial)), catalogue, true);
  }
}

constexpr PlaceOptionNames kPlaceOptions = {"--ranks-per-trial", "--trials-per-gpu"};

/// The ranks are the slots of the hosts. GPUs are counted on each host by itself; of cores it is taken to have as many
/// as this machine.
void place_on_hosts(const JobFile& job, const launch::PoolOptions& pool, sweep::SweepRunOptions& options) {
  check_sharing(job, kPlaceOptions, options);
  options.prometheus_port = job.telemetry.prometheus_port;
  const launch::Hosts hosts = pool.list();
  int most = 0;
  for (const auto& host : hosts) {
    if (host.slots < options.ranks_per_trial) {
      throw Error(ExitCode::usage, fmt::format("--ranks-per-trial: expected at most the {} slots of host {}, since a "
                                               "trial runs on one host, found {}",
                                               host.slots, host.name, options.ranks_per_trial));
    }
    most = std::max(most, host.slots);
  }
  if (job.device == DeviceChoice::cuda) {
    const int gpus = (most + options.trials_per_gpu - 1) / options.trials_per_gpu;
    if (!job.devices.empty() && job.devices.size() < static_cast<std::size_t>(gpus)) {
      throw Error(ExitCode::usage, fmt::format("devices: expected {} for the {} slots of a host, found {}", gpus, most,
                                               job.devices.size()));
    }
    for (int slot = 0; slot < most; ++slot) {
      const int gpu = slot / options.trials_per_gpu;
      options.devices.push_back(job.devices.empty() ? gpu : job.devices[gpu]);
    }
  } else if (job.threads == 0) {
    options.threads = std::max(1, device::available_cores() / most);
  }
}

constexpr double kAskAgain = 5;  // seconds: a host that comes back is of use at once

/// The hosts of a Slurm job are those of the sweep, unless the command says otherwise. One host is this machine.
std::optional<launch::PoolOptions> slurm_pool(SweepArguments& arguments) {
  const auto allocated = arguments.ranks == "auto" ? launch::allocated_hosts() : std::nullopt;
  if (!allocated) return std::nullopt;
  if (allocated->size() == 1) {
    arguments.ranks = fmt::format("{}", allocated->front().slots);
    return std::nullopt;
  }
  launch::PoolOptions pool;
  pool.list = [hosts = *allocated] { return hosts; };
  pool.agent = launch::kSrunAgent;
  pool.shell = launch::kSrunShell;
  pool.program = launch::installed_program();
  pool.ask_again_seconds = kAskAgain;
  return pool;
}

std::optional<launch::PoolOptions> pool_of(SweepArguments& arguments) {
  if (arguments.hosts.empty() && arguments.hostfile.empty()) return slurm_pool(arguments);
  if (!arguments.hosts.empty() && !arguments.hostfile.empty()) {
    throw Error(ExitCode::usage, "--hosts and --hostfile: expected one of them, found both");
  }
  if (arguments.ranks != "auto") {
    throw Error(ExitCode::usage,
                fmt::format("--ranks: expected none with --hosts and --hostfile, whose slots they are, "
                            "found {}",
                            arguments.ranks));
  }
  launch::PoolOptions pool;
  pool.list = [hosts = arguments.hosts.empty() ? launch::read_hostfile(arguments.hostfile)
                                               : launch::parse_hosts(arguments.hosts)] { return hosts; };
  pool.agent = arguments.agent;
  pool.program = launch::installed_program();
  pool.ask_again_seconds = kAskAgain;
  return pool;
}

int run_sweep(SweepArguments& arguments) {
  (void)rank_count(arguments.ranks, 1);  // a mistake here is reported before those in the file
  arguments.options.pool = pool_of(arguments);
  const FileAndOverrides words = split_words(arguments.words, "sweep file");
  if (words.file.empty()) throw Error(ExitCode::usage, "expected a sweep file, found none");
  const Registries registries = train::registries_of({words.file}, words.overrides);
  const config::Catalogue catalogue = train::catalogue_of(registries);
  const config::SweepFile sweep = load(arguments, words, registries, catalogue);
  const JobFile job = config::load_trial(sweep, {}, catalogue, true);
  check_first_trials(sweep, catalogue);
  for (const auto& warning : config::other_validation_samples(sweep, job)) say("warning: {}\n", warning);
  config::check_world_size(job, arguments.options.ranks_per_trial);
  if (arguments.options.pool) {
    place_on_hosts(job, *arguments.options.pool, arguments.options);
  } else {
    place_trials(job, arguments.ranks, kPlaceOptions, arguments.options);
  }
  arguments.options.json = arguments.log == "json";
  return sweep::run_sweep(sweep, arguments.options, catalogue);
}

void add_host_options(CLI::App& command, SweepArguments& arguments) {
  command.add_option(
      "--hosts", arguments.hosts,
      "hosts that share the directory, and their slots: a:2,b:2; by default those of the Slurm job, or this "
      "machine alone");
  command.add_option("--hostfile", arguments.hostfile, "a file with one host per line, as in a slots=2");
  command.add_option("--agent", arguments.agent, "the program that runs a command on another host: AGENT HOST COMMAND")
      ->capture_default_str();
  command
      .add_option("--wait-for-lock", arguments.options.lock_seconds,
                  "seconds to wait for another sweep to release the directory")
      ->check(at_least(0))
      ->capture_default_str();
}

}  // namespace

void add_sweep(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand(
      "sweep", "Search settings of a job: train trials of it beside each other, and keep the best.");
  command->footer(
      "Examples:\n  lockstep sweep examples/digits-sweep.yaml\n"
      "  lockstep sweep sweep.yaml --ranks 4 --ranks-per-trial 2");
  auto arguments = std::make_shared<SweepArguments>();
  command
      ->add_option("FILE", arguments->words,
                   "a sweep file, then any number of overrides of its job key=value (batch_size=256)")
      ->required();
  sweep::SweepRunOptions& options = arguments->options;
  command
      ->add_option("--ranks", arguments->ranks,
                   "ranks of all trials that run at the same time; auto: one for each GPU, or core")
      ->capture_default_str();
  command->add_option("--ranks-per-trial", options.ranks_per_trial, "ranks that train a trial")
      ->check(at_least(1))
      ->capture_default_str();
  command
      ->add_option("--trials-per-gpu", options.trials_per_gpu,
                   "trials that share a GPU, or a slice of one, where MPS or time-slicing lets them")
      ->check(at_least(1))
      ->capture_default_str();
  command->add_option("--retries", options.retries, "how often a trial that ends with an error is tried again")
      ->check(at_least(0))
      ->capture_default_str();
  add_host_options(*command, *arguments);
  command->add_option("--directory", arguments->directory,
                      "for trials and results; the file's `directory`, or sweeps/<name>, by default");
  command->add_option("--log", arguments->log, "people (on stderr) or json (the journal's lines on stdout)")
      ->check(one_of({"people", "json"}))
      ->capture_default_str();
  command->callback([&run, arguments] { run = [arguments] { return run_sweep(*arguments); }; });
}

}  // namespace lockstep::cli
