#include "cli/self_launch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "comm/mpi_session.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

namespace {

// The handler needs the child; a signal handler can only reach a global.
volatile sig_atomic_t child = 0;
volatile sig_atomic_t asked = 0;

void pass_on(int signal) {
  if (child <= 0) return;
  kill(child, asked == 0 ? SIGUSR1 : (signal == SIGUSR1 ? SIGTERM : signal));
  asked = 1;
}

std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::string> arguments;
  for (std::size_t at = 0; at < text.size();) {
    arguments.emplace_back(text.c_str() + at);
    at += arguments.back().size() + 1;
  }
  char path[4096] = {};
  if (readlink("/proc/self/exe", path, sizeof path - 1) > 0) arguments.at(0) = path;
  return arguments;
}

[[noreturn]] void become(const std::vector<std::string>& command) {
  setpgid(0, 0);  // a terminal's Ctrl-C reaches only this program, which passes it on
  if (const int null = open("/dev/null", O_RDONLY); null >= 0) dup2(null, STDIN_FILENO);
  std::vector<char*> argv;
  for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  fmt::print(stderr, "lockstep: cannot start mpirun: {}; install openmpi-bin, or run without --ranks\n",
             std::strerror(errno));
  _exit(static_cast<int>(ExitCode::usage));
}

}  // namespace

std::vector<std::string> mpirun_command(int ranks) {
  std::vector<std::string> command = {"mpirun", "-n", fmt::format("{}", ranks), "--bind-to", "none", "--quiet"};
  if (comm::open_mpi_major() >= 5) {
    command.insert(command.end(), {"--map-by", ":OVERSUBSCRIBE"});
  } else {
    command.push_back("--oversubscribe");
  }
  command.insert(command.end(), {"--mca", "mpi_yield_when_idle", "1"});
  if (geteuid() == 0) command.push_back("--allow-run-as-root");
  return command;
}

int rank_count(const std::string& text) {
  if (text == "auto") return 1;  // no GPU backend in this build: one rank with all cores
  int ranks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  if (error != std::errc{} || end != text.data() + text.size() || ranks < 1) {
    throw Error(ExitCode::usage, fmt::format("--ranks: expected a positive number or auto, found '{}'", text));
  }
  return ranks;
}

int run_under_mpirun(int ranks) {
  auto command = mpirun_command(ranks);
  for (auto& argument : own_arguments()) command.push_back(std::move(argument));
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) std::signal(signal, pass_on);
  const pid_t pid = fork();
  if (pid < 0) throw Error(ExitCode::infrastructure, fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (pid == 0) become(command);
  child = pid;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(ExitCode::infrastructure);
}

}  // namespace lockstep::cli
