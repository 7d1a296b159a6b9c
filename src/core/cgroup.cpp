#include "core/cgroup.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/numbers.hpp"

namespace lockstep {

namespace {

// In a container without a cgroup namespace, the path is the host's and only the root is there: the container's own.
std::vector<std::string> folders(const std::string& mount, std::string path) {
  std::vector<std::string> found;
  std::error_code error;
  for (; !path.empty() && path != "/"; path.erase(path.rfind('/'))) {
    if (std::filesystem::is_directory(mount + path, error)) found.push_back(mount + path);
  }
  if (std::filesystem::is_directory(mount, error)) found.push_back(mount);
  return found;
}

bool holds(const std::string& list, const std::string& name) {
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    if (word == name) return true;
  }
  return false;
}

// "max" and files that are missing are `otherwise`. Version 1 has a number above any machine's memory for "none".
std::int64_t number_in(const std::string& path, std::int64_t otherwise) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return number_from<std::int64_t>(word).value_or(otherwise);
}

// The value after a word at the beginning of a line.
std::int64_t value_in(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + " ")) return number_from<std::int64_t>(line.substr(name.size() + 1)).value_or(0);
  }
  return 0;
}

double smaller_quota(double cores, double quota, double period) {
  if (quota <= 0 || period <= 0) return cores;
  return cores > 0 ? std::min(cores, quota / period) : quota / period;
}

}  // namespace

Cgroups::Cgroups(const std::string& root) {
  const std::string mount = root + "/sys/fs/cgroup";
  const bool unified = std::filesystem::exists(mount + "/cgroup.controllers");
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty() && unified) v2_ = folders(mount, path);
    if (holds(controllers, "cpu")) cpu_ = folders(mount + "/cpu", path);
    if (holds(controllers, "memory")) memory_ = folders(mount + "/memory", path);
  }
}

double Cgroups::cores() const {
  double cores = 0;
  for (const auto& folder : v2_) {  // "max 100000" or "150000 100000"
    std::ifstream file(folder + "/cpu.max");
    std::string quota, period;
    file >> quota >> period;
    cores = smaller_quota(cores, number_from<double>(quota).value_or(0), number_from<double>(period).value_or(0));
  }
  for (const auto& folder : cpu_) {
    cores =
        smaller_quota(cores, number_in(folder + "/cpu.cfs_quota_us", 0), number_in(folder + "/cpu.cfs_period_us", 0));
  }
  return cores;
}

std::int64_t Cgroups::memory_limit() const {
  std::int64_t least = kNoLimit;
  for (const auto& folder : v2_) least = std::min(least, number_in(folder + "/memory.max", kNoLimit));
  for (const auto& folder : memory_) least = std::min(least, number_in(folder + "/memory.limit_in_bytes", kNoLimit));
  return least;
}

std::int64_t Cgroups::memory_left() const {
  std::int64_t least = kNoLimit;
  const auto consider = [&](std::int64_t limit, std::int64_t used) {
    if (limit != kNoLimit) least = std::min(least, std::max<std::int64_t>(0, limit - used));
  };
  for (const auto& folder : v2_) {
    consider(number_in(folder + "/memory.max", kNoLimit), number_in(folder + "/memory.current", 0));
  }
  for (const auto& folder : memory_) {
    consider(number_in(folder + "/memory.limit_in_bytes", kNoLimit), number_in(folder + "/memory.usage_in_bytes", 0));
  }
  return least;
}

std::int64_t Cgroups::memory_kills() const {
  std::int64_t kills = 0;
  for (const auto& folder : v2_) kills = std::max(kills, value_in(folder + "/memory.events", "oom_kill"));
  for (const auto& folder : memory_) kills = std::max(kills, value_in(folder + "/memory.oom_control", "oom_kill"));
  return kills;
}

}  // namespace lockstep
