// lockstep pod: what every container of a job on Kubernetes runs.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/validators.hpp"
#include "launch/pod/pod.hpp"

namespace lockstep::cli {

namespace {

struct PodArguments {
  launch::PodOptions options;
  bool end = false, probe = false;
};

void add_place_options(CLI::App& command, launch::PodOptions& options) {
  command.add_option("--hostfile", options.hostfile, "the pods of the job, a host a line; the first one leads")
      ->capture_default_str();
  command.add_option("--name", options.name, "this pod's name in the list, where its host has another");
  command.add_option("--job", options.job, "the job file; without it, the embedded digits");
  command.add_option("--key", options.key, "the private key that all pods share")->capture_default_str();
  command.add_option("--port", options.port, "sshd's port")->check(CLI::Range(1, 65535))->capture_default_str();
  command.add_option("--state", options.state, "a folder that only this pod has, for ssh's files, HOME and TMPDIR")
      ->capture_default_str();
  command.add_option("--termination-log", options.termination_log, "a file for the message that says why it ended");
}

void add_behavior_options(CLI::App& command, launch::PodOptions& options) {
  command.add_option("--expect-hosts", options.preflight.hosts, "hosts that must answer first; without it, all")
      ->check(at_least(1));
  command.add_option("--preflight-limit", options.preflight.seconds, "seconds for these to answer")
      ->check(at_least(0.1))
      ->capture_default_str();
  command.add_option("--settle", options.preflight.settle_seconds, "seconds that are then left to the other hosts")
      ->check(at_least(0))
      ->capture_default_str();
  command.add_option("--grace", options.grace_seconds, "seconds for the ranks of a worker that is told to leave")
      ->check(at_least(0))
      ->capture_default_str();
  command
      .add_option("--leader-limit", options.leader_seconds,
                  "seconds that a worker waits for a leader that is not there; 0: for ever")
      ->check(at_least(0))
      ->capture_default_str();
  command.add_flag("--keep-workers", options.keeps_workers, "do not tell the workers that the job has ended");
  command.add_flag("--report", options.report, "instead of the job, a report on its hosts: lockstep bench hosts");
  command.add_option("--log", options.log, "people (on stderr) or json (a line an event on stdout)")
      ->check(one_of({"people", "json"}))
      ->capture_default_str();
  command
      .add_option("LAUNCH", options.launch_words,
                  "after --: overrides and options for lockstep launch, or of the report")
      ->expected(1, -1);  // with 0, CLI11 would end this subcommand at the --
}

int run(const PodArguments& arguments) {
  if (arguments.end) return launch::end_pod();
  if (arguments.probe) return launch::probe_pod(arguments.options.port);
  return launch::run_pod(arguments.options);
}

}  // namespace

void add_pod(CLI::App& program, Action& run_later) {
  CLI::App* command = program.add_subcommand(
      "pod", "Be a pod of a job on Kubernetes: the first process, sshd, and on the leader the supervisor.");
  command->footer(
      "Example:\n  lockstep pod --job /etc/lockstep/job.yaml --termination-log /dev/termination-log -- "
      "run_directory=/runs/a --max-restarts 5");
  auto arguments = std::make_shared<PodArguments>();
  add_place_options(*command, arguments->options);
  add_behavior_options(*command, arguments->options);
  command->add_flag("--probe", arguments->probe, "say whether this pod's sshd takes connections: 0 or 1");
  command->add_flag("--end", arguments->end, "")->group("");  // what the leader runs on other pods
  command->callback([&run_later, arguments] { run_later = [arguments] { return run(*arguments); }; });
}

}  // namespace lockstep::cli
