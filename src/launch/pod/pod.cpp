#include "launch/pod/pod.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/errno_code.hpp"
#include "core/files.hpp"
#include "core/say.hpp"
#include "core/spans.hpp"
#include "launch/child.hpp"
#include "launch/control_socket.hpp"
#include "launch/host_pool.hpp"
#include "launch/mpirun.hpp"
#include "launch/pod/last_message.hpp"
#include "launch/pod/pod_names.hpp"
#include "launch/pod/preflight.hpp"
#include "launch/pod/ssh_files.hpp"
#include "launch/pod/sshd.hpp"
#include "launch/pod/succession.hpp"
#include "launch/pod/unfit_node.hpp"
#include "launch/pod/worker.hpp"
#include "launch/restart_policy.hpp"
#include "launch/stop_signals.hpp"
#include "lockstep/error.hpp"

namespace lockstep::launch {

namespace {

// The pod that runs the supervisor: preflight, a report on the hosts if one is wanted, `lockstep launch`, and notifying
// the others of the end. Or that report alone.

struct LeaderCommand {
  std::vector<std::string> words;
  std::map<std::string, std::string> environment;  ///< its own, besides the pod's
};

struct LeaderOptions {
  PoolOptions pool;
  PreflightLimits preflight;
  LeaderCommand command;  ///< the supervisor's
  std::function<LeaderCommand(const Hosts&)>
      report;  ///< on these hosts; what ends with 0 lets the job begin. May be empty
  std::string termination_log;
  bool took_over = false;                ///< the job was running: those who answer go on at once
  std::function<void()> begins = [] {};  ///< called when the hosts are there
  bool once = false;                     ///< no other leader replaces this one, however it ends
  bool keeps_workers = false;            ///< workers are ended by something else
};

using std::chrono::milliseconds;

constexpr double kLeaderPoll = 0.05;  ///< seconds
constexpr milliseconds kErrorsTick{100}, kNotifyPatience{15'000};

int supervise(const LeaderCommand& command, const char* name, const LeaderOptions& options, StopSignals& signals) {
  MessagePipe errors;
  Child supervisor(command.words, {.output = "", .environment = command.environment, .errors = errors.writer()});
  errors.started();
  int passed_on = 0;
  while (!supervisor.poll()) {
    errors.pass_on(kErrorsTick, signals.descriptor());
    for (const int come = signals.count(); passed_on < come; ++passed_on) supervisor.signal(signals.last());
  }
  errors.pass_on(milliseconds(0), -1);
  const int code = supervisor.poll().value_or(1);
  const std::string message = errors.last();
  if (code != 0) {
    write_termination_message(options.termination_log,
                              message.empty() ? fmt::format("lockstep {} ended with {}", name, code) : message);
  }
  return code;
}

/// Returns the command's exit code, or the report's if that is not 0, or 75 if a signal came before it was started.
/// Signals are forwarded to it: the first ends the job with a checkpoint, a second one immediately. Throws
/// preflight()'s errors.
int lead(const LeaderOptions& options, StopSignals& signals) {
  PodNames names;
  const auto runs = [&](const std::string& host) { return names.runs(host); };
  PoolOptions with_names = options.pool;
  with_names.exists = runs;
  HostPool pool(with_names);
  const auto stop = [&] { return signals.sleep(kLeaderPoll) && signals.count() > 0; };
  if (!options.took_over && !preflight(pool, options.preflight, runs, stop)) {
    say("lockstep pod: stopped by a signal before the job was started\n");
    return static_cast<int>(ExitCode::interrupted);
  }
  int code = options.report ? supervise(options.report(pool.usable()), "bench", options, signals) : 0;
  if (code != 0 && signals.count() > 0) return static_cast<int>(ExitCode::interrupted);
  if (code == 0) {
    options.begins();
    code = supervise(options.command, options.once ? "bench" : "launch", options, signals);
  }
  // With any other code, this leader or its replacement continues, so workers must wait for it.
  const bool over = options.once || code == 0 || is_permanent(code);
  if (over && !options.keeps_workers) {
    pool.ask_all_again(kNotifyPatience);  // includes hosts that came late, or were away at the start
    const std::string end = fmt::format("pod --end {}", options.once ? 0 : code);
    for (const auto& [host, answer] : pool.run_everywhere(pool.usable(), end, kNotifyPatience)) {
      say("lockstep pod: {} could not be notified that the job has ended\n", host);
    }
  }
  return code;
}

// The first process of a container: what the kernel expects of process 1, and nothing else.
//
// Processes whose parent died become its children, and remain zombies unless it reaps them. A signal for which it has
// no handler is ignored. So a separate process does only this: it reaps processes, passes signals on to the one process
// that works, and ends as that one does.

constexpr std::chrono::milliseconds kReapPoll{10};
constexpr std::chrono::seconds kReapPatience{5};  ///< a process in uninterruptible sleep dies when its disk answers

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGHUP, SIGCHLD}) sigaddset(&set, signal);
  return set;
}

// Reaps all processes that have ended; returns the exit code of `worker` if it is among them.
std::optional<int> reap(pid_t worker) {
  std::optional<int> code;
  int status = 0;
  for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (ended == worker) code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return code;
}

bool has_children() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

// For process 1, the kernel does this. Children of killed processes become ours, so it takes several rounds.
void end_the_rest() {
  const auto end = Clock::now() + kReapPatience;
  while (has_children() && Clock::now() < end) {
    std::istringstream children(read_kernel_file(fmt::format("/proc/self/task/{}/children", getpid())));
    for (pid_t pid = 0; children >> pid;) kill(pid, SIGKILL);
    std::this_thread::sleep_for(kReapPoll);
    (void)reap(0);
  }
}

int serve(pid_t worker, const sigset_t& signals) {
  while (true) {
    siginfo_t info{};
    const int signal = sigwaitinfo(&signals, &info);
    if (signal > 0 && signal != SIGCHLD) kill(worker, signal);
    if (signal != SIGCHLD) continue;
    if (const auto code = reap(worker)) {
      end_the_rest();
      return *code;
    }
  }
}

/// Splits the program in two. In the process that works: returns nullopt at once. In the other one, which is process 1
/// in a container and elsewhere adopts the orphans below it: returns the worker's exit code (128 + signal), once it has
/// ended and no process below is left. Call it before any thread is started. Throws Error(infrastructure).
std::optional<int> become_init() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const sigset_t signals = handled_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t worker = fork();
  if (worker < 0) {
    throw Error(ExitCode::infrastructure, fmt::format("cannot start a process: {}", std::strerror(errno)));
  }
  if (worker > 0) return serve(worker, signals);
  setpgid(0, 0);  // so that a terminal's Ctrl-C arrives only once, through the first process
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return std::nullopt;
}

}  // namespace

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

// sshd runs commands by the user's shell; container runtimes give users that they add one that refuses.
bool runs_commands(const std::string& shell) {
  return shell.empty() ||
         (access(shell.c_str(), X_OK) == 0 && !shell.ends_with("/nologin") && !shell.ends_with("/false"));
}

std::string own_user() {
  const passwd* user = getpwuid(geteuid());
  if (user != nullptr && runs_commands(user->pw_shell)) return user->pw_name;
  throw Error(
      ExitCode::configuration,
      fmt::format("expected a user with the id {0} and a shell for sshd in /etc/passwd, found {1}; set the chart's "
                  "security.podSecurityContext.runAsUser to {0}, or to 1000, the image's user",
                  geteuid(), user == nullptr ? "none" : fmt::format("'{}' with {}", user->pw_name, user->pw_shell)));
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
