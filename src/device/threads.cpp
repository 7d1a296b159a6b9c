#include "device/threads.hpp"

#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <limits>
#include <string>

#include "core/cgroup.hpp"

namespace lockstep::device {

void use_one_thread() {
  omp_set_num_threads(1);
}

std::int64_t available_memory() {
  std::int64_t free = std::numeric_limits<std::int64_t>::max();
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:")) free = std::stoll(line.substr(13)) * 1024;
  }
  return std::min(free, Cgroups().memory_left());
}

CoreLimits core_limits() {
  CoreLimits limits;
  limits.quota = Cgroups().cores();
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
