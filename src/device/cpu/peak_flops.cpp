#include "device/peak_flops.hpp"

#include <cstdlib>
#include <fstream>

#include "core/whole_file.hpp"

namespace lockstep::device {

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
  if (const auto text = read_whole_file("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")) {
    return std::strtod(text->c_str(), nullptr) * 1e3;
  }
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("cpu MHz")) return std::strtod(line.c_str() + line.find(':') + 1, nullptr) * 1e6;
  }
  return 0;
}

}  // namespace lockstep::device
