#include "launch/pod/sshd.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "lockstep/error.hpp"

namespace lockstep::launch {

namespace {

constexpr std::chrono::seconds kSshdPatience{5};

std::vector<std::string> sshd_command(const std::string& folder) {
  const std::string program = find_sshd();
  if (program.empty()) {
    throw Error(ExitCode::configuration, "expected sshd in PATH or /usr/sbin, found none; install openssh-server");
  }
  std::error_code ignored;
  if (geteuid() == 0) std::filesystem::create_directories("/run/sshd", ignored);  // required when sshd runs as root
  return {program, "-D", "-e", "-f", folder + "/sshd_config"};
}

}  // namespace

std::string find_sshd() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(std::string(path == nullptr ? "" : path) + ":/usr/sbin:/usr/local/sbin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string program = folder + "/sshd";
    if (program.front() == '/' && access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

Sshd::Sshd(const std::string& folder) : daemon_(sshd_command(folder), {}) {}

// Sessions are separate processes: the first one only listens.
void Sshd::close_door() {
  daemon_.signal(SIGTERM);
  if (!daemon_.wait(kSshdPatience)) daemon_.signal(SIGKILL);
}

void Sshd::check() {
  if (const auto code = daemon_.poll()) {
    throw Error(ExitCode::infrastructure, fmt::format("sshd ended with {}; see its output above", *code));
  }
}

}  // namespace lockstep::launch
