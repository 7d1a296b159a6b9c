#include "device/cpu/cpu_info.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "core/files.hpp"
#include "core/numbers.hpp"
#include "device/device.hpp"

namespace lockstep::device {

namespace {

std::string model_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

// Names of instruction sets that oneDNN 2 does not know, by oneDNN 3's numbers.
std::string newer_isa_name(int isa) {
  static const std::map<int, std::string> names = {{0x1f, "avx2_vnni_2"},
                                                   {0x1ef, "avx512_core_fp16"},
                                                   {0x1fef, "avx512_core_amx_fp16"},
                                                   {0x201ff, "avx10_2_512"},
                                                   {0x22fff, "avx10_2_512_amx_2"}};
  const auto found = names.find(isa);
  return found == names.end() ? fmt::format("isa {:#x}", isa) : found->second;
}

std::string isa_name() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
      return "sse41";
    case dnnl::cpu_isa::avx:
      return "avx";
    case dnnl::cpu_isa::avx2:
      return "avx2";
    case dnnl::cpu_isa::avx2_vnni:
      return "avx2_vnni";
    case dnnl::cpu_isa::avx512_core:
      return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "avx512_core_amx";
    default:
      return newer_isa_name(static_cast<int>(dnnl::get_effective_cpu_isa()));
  }
}

}  // namespace

// A name's value has one bit for each of its parts.
bool has_isa(dnnl::cpu_isa isa, dnnl::cpu_isa wanted) {
  const auto bits = static_cast<unsigned>(wanted);
  return (static_cast<unsigned>(isa) & bits) == bits;
}

bool multiplies_bf16(dnnl::cpu_isa isa) {
  return has_isa(isa, dnnl::cpu_isa::avx512_core_bf16);
}

DeviceInfo cpu_info() {
  const auto* version = dnnl::version();
  return {DeviceKind::cpu, model_name(), isa_name(),
          fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch),
          multiplies_bf16(dnnl::get_effective_cpu_isa())};
}

double peak_flops(const std::string& isa, double hertz, int cores) {
  constexpr double kUnits = 2, kOperations = 2;  // multiply and add
  double floats = 0;
  if (isa.starts_with("avx512") || isa.starts_with("avx10")) {
    floats = 16;
  } else if (isa.starts_with("avx2")) {
    floats = 8;
  }
  return kUnits * kOperations * floats * hertz * cores;
}

double cpu_hertz() {
  if (const auto text = read_kernel_file("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"); !text.empty()) {
    return leading_number<double>(text).value_or(0) * 1e3;
  }
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("cpu MHz")) return leading_number<double>(line.substr(line.find(':') + 2)).value_or(0) * 1e6;
  }
  return 0;
}

}  // namespace lockstep::device
