// lockstep doctor: what this machine has, what is missing and how to get it, and whether a training step works.
#include <fmt/format.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cli/commands.hpp"
#include "cli/job_argument.hpp"
#include "core/cgroup.hpp"
#include "core/rdma.hpp"
#include "core/spans.hpp"
#include "device/device.hpp"
#include "device/threads.hpp"
#include "launch/mpirun.hpp"
#include "lockstep/error.hpp"
#include "lockstep/version.hpp"
#include "observe/rank_gpu.hpp"
#include "observe/telemetry/text.hpp"
#include "run/train/catalogue.hpp"
#include "run/train/device_choice.hpp"
#include "run/train/fingerprint.hpp"

namespace lockstep::cli {

namespace {

// What this machine has, for `lockstep doctor`. Everything is read on each call; nothing throws.

struct Library {
  std::string name;     ///< "oneDNN"
  std::string file;     ///< the file that this process has loaded; empty: not found
  std::string package;  ///< the Debian package that contains it
};

///< "Debian GNU/Linux 12 (bookworm), Linux 6.1.0"
///< on which this process may run
///< the cgroup's CPU quota; 0: no limit
///< the machine's total memory
///< the cgroup's limit; 0: no limit
///< /dev/shm; -1: none

struct CommandResult {
  int code = -1;       ///< 127: no such program
  std::string output;  ///< stdout and stderr
};

std::string line_value(const std::string& path, const std::string& key) {
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

std::string system_name() {
  utsname names{};
  uname(&names);
  const std::string name = line_value("/etc/os-release", "PRETTY_NAME=");
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

/// Runs a command through the shell, with each word in single quotes; no word may contain one.
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

/// Prints facts and collects advice.
class Report {
 public:
  void fact(const std::string& name, const std::string& value) { fmt::print("{:<14} {}\n", name, value); }
  void lacking(const std::string& what, const std::string& remedy) { advice_.push_back(what + ": " + remedy); }
  void print_advice() const {
    for (const auto& line : advice_) fmt::print("missing        {}\n", line);
  }

 private:
  std::vector<std::string> advice_;
};

std::string gigabytes(std::int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

void examine_processor(Report& report) {
  const auto cpu = device::cpu_info();
  report.fact("lockstep", version());
  report.fact("system", system_name());
  report.fact("processor", cpu.model);
  report.fact("instructions", fmt::format("{} (what oneDNN uses)", cpu.isa));
  report.fact("bf16", cpu.multiplies_bf16 ? "supported by oneDNN" : "upcast to fp32, slower than fp32");
  const double quota = cores_by_quota();
  report.fact("cores", fmt::format("{} used ({} in the machine, {} by affinity, {})", device::available_cores(),
                                   cores_of_machine(), cores_by_affinity(),
                                   quota > 0 ? fmt::format("{:.1f} by quota", quota) : "no quota"));
  if (!cpu.isa.starts_with("avx")) {
    report.lacking("AVX2 or AVX-512", "training works, but slowly; use a newer processor");
  }
}

void examine_memory(Report& report) {
  const std::int64_t limit = memory_limit_bytes(), shared = shared_memory_bytes(false);
  report.fact("memory", limit > 0 ? fmt::format("{}, limited to {}", gigabytes(memory_bytes()), gigabytes(limit))
                                  : gigabytes(memory_bytes()));
  if (shared < 0) {
    report.fact("/dev/shm", "none");
    report.lacking("/dev/shm", "ranks on one machine reduce gradients through it; mount a tmpfs there");
    return;
  }
  report.fact("/dev/shm", fmt::format("{}, {} free", gigabytes(shared), gigabytes(shared_memory_bytes(true))));
  if (shared_memory_bytes(true) < (std::int64_t{256} << 20)) {
    report.lacking("space in /dev/shm",
                   "a large model's gradients need more; containers: --shm-size=1g, or an emptyDir of "
                   "medium Memory mounted there");
  }
}

void examine_libraries(Report& report) {
  report.fact("fingerprint", train::take_fingerprint(exec::CpuDevice()).text());
  for (const Library& library : libraries()) {
    const std::string place = library.file.empty() ? "built in, or not loaded yet" : library.file;
    report.fact(library.name, place);
  }
}

void examine_mpi(Report& report) {
  const CommandResult found = run_command({"mpirun", "--version"});
  if (found.code != 0) {
    report.fact("mpirun", "not found");
    report.lacking("mpirun", "needed for more than one rank: apt-get install openmpi-bin");
    return;
  }
  report.fact("mpirun", found.output.substr(0, found.output.find('\n')));
  auto command = launch::mpirun_command({.ranks = 2, .hosts = {}, .agent = "", .environment = {}, .mark = ""});
  command.emplace_back("true");
  const auto start = Clock::now();
  const CommandResult run = run_command(command);
  if (run.code == 0) {
    report.fact("two processes", fmt::format("start and end in {}", telemetry::duration(seconds_since(start))));
    return;
  }
  report.fact("two processes", fmt::format("mpirun failed with {}: {}", run.code, run.output));
  report.lacking("a working mpirun",
                 "see its message above; a host's name that resolves and a writable TMPDIR are the "
                 "usual causes");
}

void examine_module(Report& report, const train::GpuFacts& facts) {
  if (facts.module_problem.empty()) {
    report.fact("CUDA module", fmt::format("for CUDA {}", device::cuda_version_text(facts.module_cuda_version)));
    report.fact("CUDA libraries", facts.module_libraries);
    report.fact("GPU code", train::kGpuCodeTested);
    return;
  }
  report.fact("CUDA module", facts.module_problem);
  if (facts.driver.state == device::DriverState::ready) {
    report.lacking("a matching CUDA module",
                   "scripts/cuda-toolkit.sh fetches the toolkit to build it with, see docs/gpu.md");
  }
}

void examine_gpus(Report& report) {
  using State = device::DriverState;
  const train::GpuFacts facts = train::ask_gpu_facts();
  const device::DriverFacts& driver = facts.driver;
  examine_module(report, facts);
  if (driver.state == State::absent) {
    report.fact("GPUs", "none: NVIDIA's driver is not installed, which only device: cuda needs");
    return;
  }
  if (driver.state == State::broken) {
    report.fact("GPUs", driver.problem);
    report.lacking("a driver that works", driver.remedy);
    return;
  }
  report.fact("GPU driver", observe::driver_text(observe::driver_version(), driver.cuda_version));
  if (facts.visible) report.fact("visible", fmt::format("CUDA_VISIBLE_DEVICES is '{}'", *facts.visible));
  if (driver.state == State::no_gpu) report.fact("GPUs", "none visible to this process");
  for (std::size_t i = 0; i < driver.gpus.size(); ++i) report.fact(fmt::format("GPU {}", i), text_of(driver.gpus[i]));
  if (facts.module_problem.empty() && driver.cuda_version / 1000 < facts.module_cuda_version / 1000) {
    report.lacking(fmt::format("a driver for CUDA {}", device::cuda_version_text(facts.module_cuda_version)),
                   "update NVIDIA's driver");
  }
}

void examine_rdma(Report& report) {
  const RdmaFacts facts = rdma_facts();
  if (facts.devices == 0 && !is_rdma_required()) return;
  report.fact("RDMA", fmt::format("{} in /dev/infiniband, {}",
                                  facts.devices == 1 ? "a device" : fmt::format("{} devices", facts.devices),
                                  facts.lockable_bytes == RdmaFacts::kNoLimit
                                      ? "no limit on locked memory"
                                      : fmt::format("{} KiB of memory may be locked", facts.lockable_bytes >> 10)));
  const std::string problem = rdma_problem(facts, "this host");
  if (!problem.empty()) report.lacking("RDMA", problem);
}

/// Trains a few digits; returns 0, or the exit code of the failure.
int try_training(Report& report) {
  const Registries registries = Registries::built_in();
  const auto start = Clock::now();
  try {
    const JobFile job = config::default_job({"data.train.digits.count=128", "data.validation.digits.count=64",
                                             "steps=2", "learning_rate=0.001", "checkpoint=never"},
                                            train::catalogue_of(registries));
    const auto communicator = make_single_communicator();
    const TrainResult result = train_job(job, *communicator, registries);
    report.fact("training",
                fmt::format("2 steps of digits in {}; parameters sha256 {}", telemetry::duration(seconds_since(start)),
                            result.parameters_sha256.substr(0, 16)));
    return 0;
  } catch (const Error& error) {
    report.fact("training", fmt::format("failed: {}", error.what()));
    return static_cast<int>(error.code());
  }
}

int examine() {
  Report report;
  examine_processor(report);
  examine_memory(report);
  examine_libraries(report);
  examine_mpi(report);
  examine_gpus(report);
  examine_rdma(report);
  const int code = try_training(report);
  report.print_advice();
  fmt::print("{}\n", code == 0 ? "lockstep can train on this machine" : "lockstep cannot train on this machine");
  return code;
}

}  // namespace

void add_doctor(CLI::App& program, Action& run) {
  CLI::App* command =
      program.add_subcommand("doctor", "Report what this machine has, what is missing, and whether training works.");
  command->footer(
      "Exits with 0 if training works on one rank, else with the exit code of the failed training.\n\nExample:\n  "
      "lockstep doctor");
  command->callback([&run] { run = examine; });
}

}  // namespace lockstep::cli
