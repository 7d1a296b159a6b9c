#include "launch/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <thread>
#include <utility>

#include "comm/transport/mpi_session.hpp"
#include "core/say.hpp"
#include "launch/control_socket.hpp"
#include "launch/open_mpi_words.hpp"
#include "launch/processes.hpp"
#include "lockstep/error.hpp"

namespace lockstep::launch {

namespace {

constexpr std::chrono::milliseconds kChildPoll{5};
constexpr const char* kPassedOnVariable = "LOCKSTEP_SIGNALS_PASSED_ON";

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const auto& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

int stdin_with(const std::string& input) {
  if (input.empty()) return open("/dev/null", O_RDONLY);
  const int file = memfd_create("input", MFD_CLOEXEC);
  const auto written = pwrite(file, input.data(), input.size(), 0);  // and the offset stays where reading begins
  return written == static_cast<ssize_t>(input.size()) ? file : -1;
}

// Runs between fork and exec. The parent may have a thread that writes events, so nothing here may take a lock that
// such a thread could hold: glibc makes malloc() usable again in the child, and no other thread changes the
// environment.
[[noreturn]] void become(const std::vector<std::string>& command, const ChildOptions& options, int output) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, options.trains == Trains::nothing ? SIGTERM : SIGUSR1);
  sigset_t blocked;
  sigemptyset(&blocked);
  if (options.trains == Trains::on_ranks) {
    for (const int signal : {SIGTERM, SIGHUP, SIGPIPE}) sigaddset(&blocked, signal);
  }
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  if (options.trains != Trains::nothing) setenv(kPassedOnVariable, "1", 1);
  if (const int input = stdin_with(options.input); input >= 0) dup2(input, STDIN_FILENO);
  if (output < 0 && !options.output.empty()) {
    output = open(options.output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  }
  if (output >= 0) {
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
  }
  if (options.errors >= 0) dup2(options.errors, STDERR_FILENO);
  if (options.prints >= 0) dup2(options.prints, STDOUT_FILENO);
  for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
  auto argv = pointers(command);
  execvp(argv[0], argv.data());
  say("lockstep: cannot start {}: {}\n", command.front(), std::strerror(errno));
  _exit(127);
}

pid_t start(const std::vector<std::string>& command, const ChildOptions& options, int output) {
  const pid_t pid = fork();
  if (pid < 0) throw Error(ExitCode::infrastructure, fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (pid == 0) become(command, options, output);
  return pid;
}

// The command's output, until it closes its end or time is up.
std::string read_until(int descriptor, Clock::time_point end) {
  std::string text;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd readable{descriptor, POLLIN, 0};
    if (left <= 0 || ::poll(&readable, 1, static_cast<int>(left)) <= 0) return text;
    std::array<char, 4096> block{};
    const ssize_t count = read(descriptor, block.data(), block.size());
    if (count <= 0) return text;
    text.append(block.data(), count);
  }
}

int kill_and_reap(pid_t pid) {
  kill(-pid, SIGKILL);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  return 124;
}

int code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

bool signals_are_passed_on() {
  return std::getenv(kPassedOnVariable) != nullptr || comm::launched_by_mpi();
}

Child::Child(const std::vector<std::string>& command, const ChildOptions& options)
    : pid_(start(command, options, -1)) {}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), code_(other.code_), killed_(other.killed_) {}

Child::~Child() {
  if (pid_ > 0 && !poll()) (void)kill_and_reap(pid_);
}

std::optional<int> Child::poll() {
  int status = 0;
  if (!code_ && pid_ > 0 && waitpid(pid_, &status, WNOHANG) == pid_) {
    code_ = code_of(status);
    killed_ = WIFSIGNALED(status);
  }
  return code_;
}

std::optional<int> Child::wait(std::chrono::milliseconds patience) {
  const auto end = Clock::now() + patience;
  while (!poll() && Clock::now() < end) std::this_thread::sleep_for(kChildPoll);
  return code_;
}

void Child::signal(int number) const {
  if (pid_ > 0 && !code_) kill(pid_, number);
}

CommandOutput run_command(const std::vector<std::string>& command, std::chrono::milliseconds patience) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error(ExitCode::infrastructure, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  const auto end = Clock::now() + patience;
  const pid_t pid = start(command, {}, ends[1]);
  close(ends[1]);
  CommandOutput result;
  result.output = read_until(ends[0], end);
  close(ends[0]);
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (Clock::now() >= end) return {kill_and_reap(pid), result.output};
    std::this_thread::sleep_for(kChildPoll);
  }
  result.code = code_of(status);
  return result;
}

namespace {

int memory_file(const char* name) {
  const int file = memfd_create(name, MFD_CLOEXEC);
  if (file < 0)
    throw Error(ExitCode::infrastructure, fmt::format("cannot make a file in memory: {}", std::strerror(errno)));
  return file;
}

std::string content_of(int file) {
  std::string text(static_cast<std::size_t>(std::max<off_t>(lseek(file, 0, SEEK_END), 0)), '\0');
  const ssize_t count = pread(file, text.data(), text.size(), 0);
  text.resize(std::max<ssize_t>(count, 0));
  return text;
}

}  // namespace

BackgroundCommand::BackgroundCommand(const std::vector<std::string>& command, std::chrono::milliseconds patience,
                                     const std::string& input)
    : output_(memory_file("output")), errors_(memory_file("errors")), end_(Clock::now() + patience) {
  child_.emplace(
      command,
      ChildOptions{
          .output = fmt::format("/proc/self/fd/{}", output_), .environment = {}, .errors = errors_, .input = input});
}

BackgroundCommand::~BackgroundCommand() {
  close(output_);
  close(errors_);
}

std::optional<BackgroundCommand::Result> BackgroundCommand::poll() {
  std::optional<int> code = child_->poll();
  if (!code && Clock::now() < end_) return std::nullopt;
  return Result{code.value_or(124), content_of(output_), content_of(errors_)};
}

std::string message_in_log(const std::string& output) {
  std::ifstream file(output);
  OpenMpiWords words;
  std::string last, message;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("lockstep: ")) message = line.substr(10);
    if (words.take(line) && !line.empty()) last = line;
  }
  if (message.empty()) message = words.death(-1);
  if (message.empty() && last.empty()) message = one_line(words.first_block());
  return message.empty() ? last : message;
}

std::string installed_program() {
  constexpr std::string_view kRemoved = " (deleted)";
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (length <= 0) return words_of("/proc/self/cmdline").at(0);
  std::string_view program(path.data(), length);
  if (program.ends_with(kRemoved)) program.remove_suffix(kRemoved.size());
  return std::string(program);
}

std::string own_program() {
  struct stat running {
  }, installed{};
  const std::string path = installed_program();
  const bool same = stat("/proc/self/exe", &running) == 0 && stat(path.c_str(), &installed) == 0 &&
                    running.st_ino == installed.st_ino && running.st_dev == installed.st_dev;
  return same ? path : fmt::format("/proc/{}/exe", getpid());
}

std::vector<std::string> own_program_on_hosts() {
  const std::string installed = installed_program(), own = own_program();
  if (own == installed) return {installed};
  constexpr const char* kChoose =
      R"sh(if [ "$(readlink "$0")" = "$1 (deleted)" ]; then shift; set -- "$0" "$@"; fi; exec "$@")sh";
  return {"sh", "-c", kChoose, own, installed};
}

std::vector<std::string> own_command_line() {
  auto words = words_of("/proc/self/cmdline");
  words.at(0) = own_program();
  return words;
}

}  // namespace lockstep::launch
