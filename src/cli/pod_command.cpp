// lockstep pod: what every container of a job on Kubernetes runs.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "cli/commands.hpp"
#include "cli/validators.hpp"
#include "launch/pod/pod.hpp"

namespace lockstep::cli {

namespace {

struct PodArguments {
  launch::PodOptions options;
  std::optional<int> end;
  bool probe = false;
};

void add_place_options(CLI::App& command, launch::PodOptions& options) {
  command.add_option("--hostfile", options.hostfile, "the pods of the job, one host per line; the first is the leader")
      ->capture_default_str();
  command.add_option("--name", options.name, "this pod's name in the list, if it is not its host name");
  command.add_option("--job", options.job, "the job file; without it, the embedded digits");
  command.add_option("--key", options.key, "the private key that all pods share")->capture_default_str();
  command.add_option("--port", options.port, "sshd's port")->check(CLI::Range(1, 65535))->capture_default_str();
  command.add_option("--state", options.state, "a directory of this pod alone, for ssh's files, HOME and TMPDIR")
      ->capture_default_str();
  command.add_option("--termination-log", options.termination_log,
                     "the file for the message that tells why the pod ended");
}

void add_behavior_options(CLI::App& command, launch::PodOptions& options) {
  command
      .add_option("--expect-hosts", options.preflight.hosts,
                  "hosts that must answer before the job starts; by default all")
      ->check(at_least(1));
  command
      .add_option("--preflight-limit", options.preflight.seconds,
                  "seconds that a host whose name can be resolved may stay silent")
      ->check(at_least(0.1))
      ->capture_default_str();
  command
      .add_option("--pending-limit", options.preflight.pending_seconds,
                  "seconds to wait for hosts in all, with those that wait for a node; 0: forever")
      ->check(at_least(0))
      ->capture_default_str();
  command.add_option("--settle", options.preflight.settle_seconds, "seconds to wait for the other hosts after that")
      ->check(at_least(0))
      ->capture_default_str();
  command.add_option("--grace", options.grace_seconds, "seconds that a worker's ranks have to end after a signal")
      ->check(at_least(0))
      ->capture_default_str();
  command
      .add_option("--leader-limit", options.leader_seconds,
                  "seconds that a worker waits for a missing leader; 0: forever")
      ->check(at_least(0))
      ->capture_default_str();
  command.add_option(
      "--leader-lock", options.leader_lock,
      "a file that all pods share: the pod that holds it leads, and any may; by default, the first leads");
  command
      .add_option("--takeover", options.takeover_seconds,
                  "with --leader-lock: seconds without a leader after which another pod leads")
      ->check(at_least(0))
      ->capture_default_str();
  command.add_option("--unfit-node", options.unfit_node,
                     "a file with the objects to make in Kubernetes when this pod ends because its node is unfit");
  command
      .add_option("--service-account", options.service_account,
                  "the folder with the pod's token and the cluster's certificate")
      ->capture_default_str();
  command.add_flag("--keep-workers", options.keeps_workers, "do not end the workers when the job has ended");
  command.add_flag("--sweep", options.sweep, "the job file is a sweep file: train its trials on the pods");
  command.add_flag("--report", options.report, "instead of running the job, report on its hosts: lockstep bench hosts");
  command.add_option(
      "--check-hosts", options.check_hosts,
      "before the job begins, report on its hosts, with these options of lockstep bench hosts in one word; "
      "it begins if there is no problem");
  command.add_option("--log", options.log, "people (on stderr) or json (one line per event on stdout)")
      ->check(one_of({"people", "json"}))
      ->capture_default_str();
  command
      .add_option("LAUNCH", options.launch_words,
                  "after --: overrides and options of lockstep launch or sweep, or of the report")
      ->expected(1, -1);  // with 0, CLI11 would end this subcommand at the --
}

int run(const PodArguments& arguments) {
  if (arguments.end) return launch::end_pod(*arguments.end);
  if (arguments.probe) return launch::probe_pod(arguments.options.port);
  return launch::run_pod(arguments.options);
}

}  // namespace

void add_pod(CLI::App& program, Action& run_later) {
  CLI::App* command = program.add_subcommand(
      "pod", "Run a pod of a job on Kubernetes: its first process, sshd and, in the leader, the supervisor.");
  command->footer(
      "Example:\n  lockstep pod --job /etc/lockstep/job.yaml --termination-log /dev/termination-log -- "
      "run_directory=/runs/a --max-restarts 5");
  auto arguments = std::make_shared<PodArguments>();
  add_place_options(*command, arguments->options);
  add_behavior_options(*command, arguments->options);
  command->add_flag("--probe", arguments->probe,
                    "check whether this pod's sshd accepts connections; exits with 0 or 1");
  command->add_option("--end", arguments->end, "")->group("");  // used by the leader on other pods
  command->callback([&run_later, arguments] { run_later = [arguments] { return run(*arguments); }; });
}

}  // namespace lockstep::cli
