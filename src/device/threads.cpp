#include "device/threads.hpp"

#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <limits>
#include <string>

namespace lockstep::device {

void use_one_thread() {
  omp_set_num_threads(1);
}

namespace {

// cgroup v2: "max 100000" or "150000 100000"; v1: two files. 0: no quota.
double cgroup_cores() {
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2) {
    std::string quota;
    double period = 0;
    if (v2 >> quota >> period; quota != "max" && period > 0) return std::stod(quota) / period;
    return 0;
  }
  std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double quota = 0, period = 0;
  if (quota_file >> quota && period_file >> period && quota > 0 && period > 0) return quota / period;
  return 0;
}

std::int64_t number_in(const char* path, std::int64_t otherwise) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? value : otherwise;
}

}  // namespace

std::int64_t available_memory() {
  constexpr auto kMuch = std::numeric_limits<std::int64_t>::max();
  std::int64_t free = kMuch;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:")) free = std::stoll(line.substr(13)) * 1024;
  }
  const std::int64_t most = number_in("/sys/fs/cgroup/memory.max", kMuch);
  if (most == kMuch) return free;
  return std::min(free, std::max<std::int64_t>(0, most - number_in("/sys/fs/cgroup/memory.current", 0)));
}

CoreLimits core_limits() {
  CoreLimits limits;
  limits.quota = cgroup_cores();
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) CPU_SET(0, &set);
  for (std::size_t core = 0; core < CoreLimits::kCores; ++core) {
    if (CPU_ISSET(core, &set)) limits.allow(core);
  }
  return limits;
}

int available_cores() {
  const CoreLimits limits = core_limits();
  int cores = 0;
  for (const std::uint64_t word : limits.mask) cores += std::popcount(word);
  if (limits.quota > 0) cores = std::min(cores, static_cast<int>(limits.quota));
  return std::max(1, cores);
}

}  // namespace lockstep::device
