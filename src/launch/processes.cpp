#include "launch/processes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <functional>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "core/files.hpp"
#include "core/spans.hpp"

namespace lockstep::launch {

namespace {

constexpr std::chrono::milliseconds kProcfsPoll{10};

bool holds_word(const std::string& path, const std::string& word) {
  const auto words = words_of(path);
  return std::find(words.begin(), words.end(), word) != words.end();
}

// `lockstep launch --end MARK` has the mark, too, but does not belong to the launch: if a machine is listed under two
// names, two of them run at once.
bool is_marked(const std::string& folder, const std::string& mark) {
  if (holds_word(folder + "/environ", fmt::format("{}={}", kMarkVariable, mark))) return true;
  const auto words = words_of(folder + "/cmdline");
  const auto found = std::find(words.begin(), words.end(), mark);
  return found != words.end() && (found == words.begin() || *(found - 1) != "--end");
}

// Processes of a container on this machine belong to another host, where they are ended.
bool is_of_this_host(const std::string& folder) {
  std::error_code error;
  const auto own = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  return std::filesystem::read_symlink(folder + "/ns/pid", error) == own;
}

bool has_variable(const std::string& folder, const std::string& name) {
  const auto words = words_of(folder + "/environ");
  return std::any_of(words.begin(), words.end(), [&](const auto& word) { return word.starts_with(name + "="); });
}

bool is_rank(const std::string& folder) {
  const bool numbered = has_variable(folder, "OMPI_COMM_WORLD_RANK") || has_variable(folder, "PMIX_RANK");
  return numbered && has_variable(folder, kMarkVariable);
}

bool is_of_a_launch(const std::string& folder) {
  return has_variable(folder, kMarkVariable) || holds_word(folder + "/cmdline", kMarkSetting);
}

// Z: ended. Empty: there is no such process.
std::string state_of(const std::string& folder) {
  const std::string text = read_kernel_file(folder + "/stat");
  const auto name_end = text.rfind(')');
  std::string state;
  if (name_end != std::string::npos) std::istringstream(text.substr(name_end + 1)) >> state;
  return state;
}

// The folder in /proc with a process's environment and command line; empty if it has ended and so holds nothing any
// more. If a process's first thread has ended, it appears as a zombie even while another of its threads is in an
// uninterruptible call, such as fsync(): that one still holds locks and memory, and only the thread's own folder has
// the environment.
std::string folder_of_living(const std::string& folder) {
  const std::string state = state_of(folder);
  if (state != "Z") return state.empty() ? "" : folder;
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator(folder + "/task", error)) {
    const std::string of_thread = state_of(thread.path().string());
    if (!of_thread.empty() && of_thread != "Z" && of_thread != "X") return thread.path().string();
  }
  return "";
}

// The processes of this host for whose /proc folder `is_one` is true, except this process itself.
std::vector<pid_t> find_processes(const std::function<bool(const std::string&)>& is_one) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    pid_t pid = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad != std::errc{} || end != name.data() + name.size() || pid == getpid()) continue;
    const std::string folder = folder_of_living(entry.path().string());
    if (!folder.empty() && is_one(folder) && is_of_this_host(folder)) found.push_back(pid);
  }
  return found;
}

}  // namespace

std::vector<std::string> words_of(const std::string& path) {
  const std::string text = read_kernel_file(path);
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size(); at += words.back().size() + 1) words.emplace_back(text.c_str() + at);
  return words;
}

std::vector<pid_t> marked_processes(const std::string& mark) {
  return find_processes([&](const std::string& folder) { return is_marked(folder, mark); });
}

std::vector<pid_t> ranks_here() {
  return find_processes(is_rank);
}

std::vector<pid_t> launch_processes_here() {
  return find_processes(is_of_a_launch);
}

int kill_marked(const std::string& mark, pid_t spared, std::chrono::milliseconds patience) {
  std::set<pid_t> killed;
  const auto end = Clock::now() + patience;
  while (true) {
    auto left = marked_processes(mark);
    std::erase(left, spared);
    for (const pid_t pid : left) {
      kill(pid, SIGKILL);
      killed.insert(pid);
    }
    if (left.empty() || Clock::now() >= end) return killed.size();
    std::this_thread::sleep_for(kProcfsPoll);
  }
}

std::string random_hex() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace lockstep::launch
