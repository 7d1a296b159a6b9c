#include "launch/pod/pod.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>

#include "core/errno_code.hpp"
#include "core/whole_file.hpp"
#include "launch/control_socket.hpp"
#include "launch/mpirun.hpp"
#include "launch/pod/init.hpp"
#include "launch/pod/last_message.hpp"
#include "launch/pod/leader.hpp"
#include "launch/pod/ssh_files.hpp"
#include "launch/pod/sshd.hpp"
#include "launch/pod/succession.hpp"
#include "launch/pod/unfit_node.hpp"
#include "launch/pod/worker.hpp"
#include "launch/restart_policy.hpp"
#include "lockstep/error.hpp"

namespace lockstep::launch {

PodRole role_of(const Hosts& hosts, const std::string& own_name, const std::string& place) {
  const std::string own = first_label(own_name);
  const auto is_own = [&](const Host& host) { return first_label(host.name) == own; };
  if (!hosts.empty() && is_own(hosts.front())) return PodRole::leader;
  if (std::any_of(hosts.begin(), hosts.end(), is_own)) return PodRole::worker;
  throw Error(ExitCode::configuration,
              fmt::format("{}: expected a line for this host, '{}', found {}; the list must name every pod of the job, "
                          "the leader first",
                          place, own_name, hosts.empty() ? "no host" : to_text(hosts)));
}

namespace {

constexpr const char* kStateVariable = "LOCKSTEP_POD_STATE";  ///< in every process of a pod, started by ssh or not
constexpr const char* kEndedFile = "/ended";
constexpr double kAskAgain = 1, kAskAgainAtMost = 10;  ///< seconds, in the preflight
constexpr double kLockLease = 120;                     ///< seconds until a network file system frees a lost host's lock

std::string own_user() {
  const passwd* user = getpwuid(geteuid());
  if (user != nullptr) return user->pw_name;
  throw Error(
      ExitCode::configuration,
      fmt::format("expected a user name for the id {}, found none in /etc/passwd: sshd needs one; run the pod as "
                  "the image's user (runAsUser: 1000)",
                  geteuid()));
}

// The root file system may be read-only: HOME and TMPDIR are set to the state folder.
void settle_in(const std::string& state) {
  std::error_code error;
  std::filesystem::create_directories(state + "/tmp", error);
  if (error) {
    throw Error(code_of_errno(error, ExitCode::cannot_create),
                fmt::format("--state: cannot create {}: {}; mount a folder there that this user may write to (an "
                            "emptyDir)",
                            state, error.message()));
  }
  std::filesystem::remove(state + kEndedFile, error);  // left by this container's previous life
  setenv("HOME", state.c_str(), 1);
  setenv("TMPDIR", (state + "/tmp").c_str(), 1);
  setenv(kStateVariable, state.c_str(), 1);
}

std::map<std::string, std::string> own_environment() {
  std::map<std::string, std::string> variables;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string word = *at;
    if (const auto cut = word.find('='); cut != std::string::npos)
      variables[word.substr(0, cut)] = word.substr(cut + 1);
  }
  return variables;
}

bool names(const std::vector<std::string>& words, const std::string& option) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return word == option || word.starts_with(option + "="); });
}

std::vector<std::string> launch_command(const PodOptions& options, const std::string& agent) {
  std::vector<std::string> command = {own_program(), options.sweep ? "sweep" : "launch"};
  if (!options.job.empty()) command.push_back(options.job);
  command.insert(command.end(), {"--hostfile", options.hostfile, "--agent", agent, "--log", options.log});
  // Pods come back sooner than machines do, and those of an older release may still be writing their last checkpoint.
  if (!options.sweep && !names(options.launch_words, "--ask-again"))
    command.insert(command.end(), {"--ask-again", "5"});
  if (!options.sweep && !options.keeps_workers) command.emplace_back("--replace-unfit");
  if (!names(options.launch_words, "--wait-for-lock")) {
    command.insert(command.end(), {"--wait-for-lock", fmt::format("{:.0f}", options.grace_seconds + kLockLease)});
  }
  command.insert(command.end(), options.launch_words.begin(), options.launch_words.end());
  return command;
}

LeaderCommand report_on(const Hosts& hosts, const std::vector<std::string>& words, const std::string& agent) {
  MpirunOptions mpirun;
  mpirun.ranks = count_slots(hosts);
  if (hosts.size() > 1) {
    mpirun.hosts = hosts;
    mpirun.agent = agent;
  }
  LeaderCommand command{mpirun_command(mpirun), mpirun_environment(mpirun)};
  command.words.insert(command.words.end(),
                       {own_program(), "bench", "hosts", "--expect-world-size", fmt::format("{}", mpirun.ranks)});
  command.words.insert(command.words.end(), words.begin(), words.end());
  return command;
}

std::vector<std::string> split_at_spaces(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

LeaderOptions leader_options(const PodOptions& options, const Hosts& hosts, const std::string& agent) {
  LeaderOptions leader;
  leader.pool.list = [path = options.hostfile] { return read_hostfile(path); };
  leader.pool.agent = agent;
  leader.pool.program = installed_program();
  leader.pool.ask_again_seconds = kAskAgain;
  leader.pool.ask_again_at_most = kAskAgainAtMost;
  leader.preflight = options.preflight;
  leader.termination_log = options.termination_log;
  leader.keeps_workers = options.keeps_workers;
  leader.once = options.report;
  // The preflight of a report asks for all hosts.
  leader.command = options.report ? report_on(hosts, options.launch_words, agent)
                                  : LeaderCommand{launch_command(options, agent), {}};
  if (!options.check_hosts.empty()) {
    leader.report = [words = split_at_spaces(options.check_hosts), agent](const Hosts& there) {
      LeaderCommand command = report_on(there, words, agent);
      // The job's stdout is for its events.
      command.words.insert(command.words.begin(), {"sh", "-c", "exec \"$@\" >&2", "sh"});
      return command;
    };
  }
  return leader;
}

WorkerOptions worker_options(const PodOptions& options, const std::string& leader, const SshSettings& ssh) {
  WorkerOptions worker;
  worker.ended = std::filesystem::absolute(options.state).string() + kEndedFile;
  worker.grace_seconds = options.grace_seconds;
  worker.leader = leader;
  worker.leader_seconds = options.leader_seconds;
  worker.probe = {"ssh", "-F", ssh_config_path(ssh), leader, "true"};
  return worker;
}

/// `leads`: whether this pod decides what becomes of the job.
int take_part(const PodOptions& options, bool& leads) {
  StopSignals signals;
  const Hosts hosts = read_hostfile(options.hostfile);
  const std::string name = options.name.empty() ? own_host_name() : options.name;
  const PodRole role = role_of(hosts, name, options.hostfile);
  leads = role == PodRole::leader;
  const std::string state = std::filesystem::absolute(options.state).string();
  const SshSettings ssh{state + "/ssh", own_user(), options.port};
  settle_in(state);
  write_ssh_files(ssh, options.key, hosts, own_environment());
  Sshd sshd(ssh.folder);
  WorkerOptions worker = worker_options(options, hosts.front().name, ssh);
  LeaderOptions leader = leader_options(options, hosts, ssh_agent_command(ssh));
  if (options.leader_lock.empty()) {
    return role == PodRole::leader ? lead(leader, signals) : work(sshd, signals, worker).value();
  }
  Succession succession(
      {options.leader_lock, name, role == PodRole::leader, options.takeover_seconds, options.preflight.seconds});
  worker.succession = &succession;
  if (const auto code = work(sshd, signals, worker)) return *code;
  leads = true;
  leader.took_over = succession.begun() && succession.has_seen_a_leader();
  if (succession.begun()) leader.report = nullptr;  // it is for the first step
  leader.preflight.required = !succession.begun();
  leader.begins = [&] { succession.begin(); };
  return lead(leader, signals);
}

bool is_unfit(int code) {
  return code == static_cast<int>(ExitCode::unfit_host);
}

// Kubernetes replaces a worker that ends as unfit without counting it, which must not go on forever if there is nobody
// else: a leader is counted.
int code_of_leader(const PodOptions& options, int code) {
  if (!is_unfit(code)) return code;
  report_unfit_node(options.unfit_node, options.service_account, read_whole_file(options.termination_log).value_or(""));
  return static_cast<int>(ExitCode::infrastructure);
}

}  // namespace

int run_pod(const PodOptions& options) {
  if (const auto code = become_init()) return *code;
  bool leads = true;
  try {
    const int code = take_part(options, leads);
    return leads ? code_of_leader(options, code) : code;
  } catch (const Error& error) {
    // What a worker finds may be the fault of its node alone: Kubernetes must not end the job for it.
    const int code = static_cast<int>(error.code());
    const bool unfit = is_unfit(code) || (!leads && is_permanent(code));
    const char* const node = std::getenv("LOCKSTEP_NODE");
    const std::string message =
        unfit && node != nullptr ? fmt::format("node {}: {}", node, error.what()) : error.what();
    write_termination_message(options.termination_log, "lockstep: " + message);
    if (!unfit) throw;
    report_unfit_node(options.unfit_node, options.service_account, message);
    throw Error(leads ? ExitCode::infrastructure : ExitCode::unfit_host, message);
  }
}

int end_pod(int code) {
  const char* state = std::getenv(kStateVariable);
  if (state == nullptr) {
    throw Error(ExitCode::usage, fmt::format("pod --end: expected to be run in a pod, found no {}", kStateVariable));
  }
  std::string text = fmt::format("{}", code);
  if (code == static_cast<int>(ExitCode::unfit_host)) {
    text += '\n' + std::string(std::istreambuf_iterator<char>(std::cin), {});
  }
  const std::string problem = try_write_whole_file(std::string(state) + kEndedFile, text);
  if (!problem.empty()) throw Error(ExitCode::cannot_create, fmt::format("pod --end: cannot write {}", problem));
  return static_cast<int>(ExitCode::done);
}

int probe_pod(int port) {
  const auto socket = ControlSocket::connect(fmt::format("127.0.0.1:{0},[::1]:{0}", port), std::chrono::seconds(2));
  return socket.open() ? static_cast<int>(ExitCode::done) : static_cast<int>(ExitCode::infrastructure);
}

}  // namespace lockstep::launch
