#include "observe/telemetry/process_sample.hpp"

#include <unistd.h>

#include <array>
#include <sstream>

#include "core/files.hpp"
#include "core/numbers.hpp"

namespace lockstep::telemetry {

ProcessSample parse_process_stat(const std::string& text, double ticks_a_second, double page_bytes) {
  // Fields are counted after the name, which may contain anything, up to the last ')' (proc(5)): 3 is the state.
  constexpr std::size_t kFirst = 3, kUser = 14, kSystem = 15, kThreads = 20, kResident = 24;
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::array<double, kResident + 1> values{};
  std::string word;
  for (std::size_t i = kFirst; i <= kResident && fields >> word; ++i) {
    if (i > kFirst) values.at(i) = number_from<double>(word).value_or(0);
  }
  return {values[kUser] / ticks_a_second, values[kSystem] / ticks_a_second, values[kResident] * page_bytes,
          values[kThreads]};
}

namespace {

// "VmHWM:\t   81340 kB"
std::int64_t in_status(const std::string& name) {
  const std::string text = read_kernel_file("/proc/self/status");
  const std::size_t at = text.find(name);
  return at == std::string::npos ? 0 : 1024 * std::strtoll(text.c_str() + at + name.size(), nullptr, 10);
}

}  // namespace

std::int64_t peak_resident_bytes() {
  return in_status("VmHWM:");
}

std::int64_t resident_bytes() {
  return in_status("VmRSS:");
}

void sample_process(RankMetrics& metrics) {
  const std::string text = read_kernel_file("/proc/self/stat");
  if (text.rfind(')') == std::string::npos) return;
  const auto sample = parse_process_stat(text, sysconf(_SC_CLK_TCK), sysconf(_SC_PAGESIZE));
  metrics.set(Metric::process_cpu, sample.user_seconds, 0);
  metrics.set(Metric::process_cpu, sample.system_seconds, 1);
  metrics.set(Metric::process_memory, sample.resident_bytes);
  metrics.set(Metric::process_threads, sample.threads);
}

}  // namespace lockstep::telemetry
