#include "cli/machine.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/cgroup.hpp"

namespace lockstep::cli {

namespace {

std::string value_of(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    std::string value = line.substr(key.size());
    std::erase(value, '"');
    return value;
  }
  return {};
}

// The loaded library whose file name starts with `prefix`: "libdnnl.so".
std::string loaded_file(const std::string& prefix) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const auto slash = line.find('/');
    if (slash == std::string::npos) continue;
    const std::filesystem::path path = line.substr(slash);
    if (path.filename().string().starts_with(prefix)) return path.string();
  }
  return {};
}

}  // namespace

std::string system_name() {
  utsname names{};
  uname(&names);
  const std::string name = value_of("/etc/os-release", "PRETTY_NAME=");
  return fmt::format("{}, {} {}", name.empty() ? "unknown system" : name, names.sysname, names.release);
}

int cores_of_machine() {
  return std::thread::hardware_concurrency();
}

int cores_by_affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : cores_of_machine();
}

double cores_by_quota() {
  return Cgroups().cores();
}

std::int64_t memory_bytes() {
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
}

std::int64_t memory_limit_bytes() {
  const std::int64_t limit = Cgroups().memory_limit();
  return limit < memory_bytes() ? limit : 0;
}

std::int64_t shared_memory_bytes(bool free) {
  struct statvfs facts {};
  if (statvfs("/dev/shm", &facts) != 0) return -1;
  return static_cast<std::int64_t>(free ? facts.f_bavail : facts.f_blocks) * static_cast<std::int64_t>(facts.f_frsize);
}

std::vector<Library> libraries() {
  struct Known {
    const char *name, *prefix, *package;
  };
  static constexpr std::array<Known, 16> kKnown = {{{"oneDNN", "libdnnl.so", "libdnnl-dev"},
                                                    {"Open MPI", "libmpi.so", "libopenmpi-dev"},
                                                    {"OpenMP", "libgomp.so", "libgomp1"},
                                                    {"yaml-cpp", "libyaml-cpp.so", "libyaml-cpp-dev"},
                                                    {"JPEG", "libjpeg.so", "libjpeg-dev"},
                                                    {"PNG", "libpng", "libpng-dev"},
                                                    {"archive", "libarchive.so", "libarchive-dev"},
                                                    {"curl", "libcurl", "libcurl4-openssl-dev"},
                                                    {"XML", "libpugixml.so", "libpugixml-dev"},
                                                    {"zlib", "libz.so", "zlib1g-dev"},
                                                    {"snappy", "libsnappy.so", "libsnappy-dev"},
                                                    {"PCRE2", "libpcre2-8.so", "libpcre2-dev"},
                                                    {"ICU", "libicuuc.so", "libicu-dev"},
                                                    {"crypto", "libcrypto.so", "libssl-dev"},
                                                    {"prometheus", "libprometheus-cpp-pull.so", "prometheus-cpp-dev"},
                                                    {"protobuf", "libprotobuf-lite.so", "libprotobuf-dev"}}};
  std::vector<Library> list;
  for (const Known& known : kKnown) list.push_back({known.name, loaded_file(known.prefix), known.package});
  return list;
}

CommandResult run_command(const std::vector<std::string>& words) {
  std::string line;
  for (const auto& word : words) line += "'" + word + "' ";
  line += "2>&1 </dev/null";
  CommandResult result;
  FILE* pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    result.output.append(buffer.data(), n);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
  return result;
}

}  // namespace lockstep::cli
