// lockstep launch: the supervisor of a job on this machine and others.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/job_argument.hpp"
#include "cli/ranks.hpp"
#include "cli/validators.hpp"
#include "launch/listening.hpp"
#include "launch/secrets.hpp"
#include "launch/supervisor.hpp"
#include "lockstep/error.hpp"
#include "run/train/catalogue.hpp"

namespace lockstep::cli {

namespace {

struct LaunchArguments {
  JobArgument job;
  launch::LaunchOptions options;
  std::string ranks, log = "people", end, keep;
};

void check_options(const launch::LaunchOptions& options) {
  const int sources = static_cast<int>(!options.hosts.empty()) + static_cast<int>(!options.hostfile.empty()) +
                      (!options.discover.empty());
  if (sources > 1) {
    throw Error(ExitCode::usage, "--hosts, --hostfile and --discover: expected one of them, found several");
  }
}

int run_launch(LaunchArguments& arguments) {
  if (!arguments.end.empty()) return launch::end_launch(arguments.end);
  if (!arguments.keep.empty()) {
    launch::keep_secrets(arguments.keep, launch::text_from_stdin());
    return 0;
  }
  launch::LaunchOptions& options = arguments.options;
  check_options(options);
  (void)profile_steps(options.profile);  // a mistake is reported before any rank starts
  (void)launch::listening_for({}, options.listen);
  // a mistake here is reported before those in the job
  if (!arguments.ranks.empty()) (void)rank_count(arguments.ranks, 1);
  arguments.job.require_file();
  const Registries registries = arguments.job.registries();
  const JobFile job = arguments.job.load(registries);
  if (!arguments.ranks.empty()) options.ranks = rank_count(arguments.ranks, automatic_ranks(job));
  if (options.ranks > 0) config::check_world_size(job, options.ranks);
  options.words = arguments.job.words;
  options.json = arguments.log == "json";
  return launch::launch(options, job, config::canonical(job, train::catalogue_of(registries)));
}

void add_host_options(CLI::App& command, launch::LaunchOptions& options) {
  command.add_option("--hosts", options.hosts,
                     "hosts and their slots: a:2,b:2; by default those of the Slurm job, or this machine");
  command.add_option("--hostfile", options.hostfile,
                     "a file with one host per line, as in a slots=2; read again while the job runs");
  command.add_option("--discover", options.discover, "a script that prints such lines; run again while the job runs");
  command.add_option(
      "--agent", options.agent,
      "the program that runs a command on another host: AGENT HOST COMMAND; by default ssh, and srun on the "
      "hosts of a Slurm job");
  command.add_option("--listen", options.listen,
                     "this machine's address for the control socket (0.0.0.0 or ::: all); by default found from the "
                     "routes to the hosts");
  command
      .add_option("--hosts-every", options.read_hosts_again_seconds,
                  "seconds between two reads of the hostfile, or runs of the script")
      ->check(at_least(0.1))
      ->capture_default_str();
  command
      .add_option("--ask-again", options.ask_hosts_again_seconds,
                  "seconds until a host that did not answer is tried again")
      ->check(at_least(0.1))
      ->capture_default_str();
  command
      .add_option("--await-hosts", options.await_hosts_seconds,
                  "seconds to wait while no host answers, before the launch ends")
      ->check(at_least(0))
      ->capture_default_str();
}

void add_limit_options(CLI::App& command, launch::LaunchOptions& options) {
  command
      .add_option("--wait-for-lock", options.lock_seconds,
                  "seconds to wait for another launch to release the run directory")
      ->check(at_least(0))
      ->capture_default_str();
  command.add_option("--max-restarts", options.max_restarts, "give up after this many restarts without progress")
      ->check(at_least(0))
      ->capture_default_str();
  command
      .add_option("--retry-for", options.retry_seconds,
                  "seconds to try again, however often, while a rank reports that its data, a store or the run "
                  "directory fails")
      ->check(at_least(0))
      ->capture_default_str();
  command
      .add_option(
          "--hang-limit", options.limits.seconds,
          "seconds without a heartbeat, or without progress of any rank, that count as a hang; at least 20 steps' time")
      ->check(at_least(0.1))
      ->capture_default_str();
  command
      .add_option("--start-limit", options.limits.start_seconds,
                  "the same limit for progress before the first step is done")
      ->check(at_least(0.1))
      ->capture_default_str();
}

}  // namespace

void add_launch(CLI::App& program, Action& run) {
  CLI::App* command = program.add_subcommand(
      "launch", "Train a job to its end: start the ranks, watch them, and restart them when one dies or hangs.");
  command->footer(
      "Examples:\n  lockstep launch examples/cifar10-resnet20.yaml --ranks 4\n"
      "  lockstep launch job.yaml --hosts a:2,b:2\n  lockstep launch job.yaml --hostfile hosts --max-restarts 10");
  auto arguments = std::make_shared<LaunchArguments>();
  arguments->job.add_to(*command);
  command->add_option("--ranks", arguments->ranks, "at most this many ranks; without hosts, on this machine");
  add_host_options(*command, arguments->options);
  add_limit_options(*command, arguments->options);
  command->add_option("--resume", arguments->options.resume, "auto, never, or the path of a checkpoint")
      ->capture_default_str();
  command->add_option("--profile", arguments->options.profile, kProfileHelp);
  command->add_option("--log", arguments->log, "people (on stderr) or json (one line per event on stdout)")
      ->check(one_of({"people", "json"}))
      ->capture_default_str();
  command->add_flag("--replace-unfit", arguments->options.replaces_unfit, "")->group("");  // used by the leader of pods
  for (const auto& [name, mark] : {std::pair("--end", &arguments->end), std::pair("--keep", &arguments->keep)}) {
    command->add_option(name, *mark, "")->group("");  // used by the supervisor on other hosts
  }
  command->callback([&run, arguments] { run = [arguments] { return run_launch(*arguments); }; });
}

}  // namespace lockstep::cli
