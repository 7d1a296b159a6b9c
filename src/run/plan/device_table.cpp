#include "run/plan/device_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "lockstep/error.hpp"

namespace lockstep::plan {

namespace {

constexpr double kTera = 1e12, kGiga = 1e9, kGibi = 1024.0 * 1024 * 1024;
constexpr double kLaunchSeconds = 4e-6;       ///< per kernel in a graph of kernels
constexpr double kGpuMessageSeconds = 20e-6;  ///< per transfer between GPUs, however short

[[noreturn]] void refuse(const std::string& word) {
  throw Error(ExitCode::usage,
              fmt::format("--devices: expected devices such as 8xH100,4xA100-40, found '{}'; known are {}", word,
                          names_of_devices()));
}

}  // namespace

const std::vector<KnownDevice>& known_devices() {
  static const std::vector<KnownDevice> devices = {
      {"V100-32", 15.7 * kTera, 15.7 * kTera, 125 * kTera, 900 * kGiga, 32 * kGibi, 150 * kGiga},
      {"A100-40", 19.5 * kTera, 156 * kTera, 312 * kTera, 1555 * kGiga, 40 * kGibi, 300 * kGiga},
      {"A100-80", 19.5 * kTera, 156 * kTera, 312 * kTera, 2039 * kGiga, 80 * kGibi, 300 * kGiga},
      {"L40S", 91.6 * kTera, 183 * kTera, 362 * kTera, 864 * kGiga, 48 * kGibi, 32 * kGiga},
      {"H100", 67 * kTera, 495 * kTera, 989 * kTera, 3350 * kGiga, 80 * kGibi, 450 * kGiga},
      {"H200", 67 * kTera, 495 * kTera, 989 * kTera, 4800 * kGiga, 141 * kGiga, 450 * kGiga},
  };
  return devices;
}

const KnownDevice* find_device(const std::string& name) {
  const auto& known = known_devices();
  const auto found = std::find_if(known.begin(), known.end(), [&](const KnownDevice& d) { return name == d.name; });
  return found == known.end() ? nullptr : &*found;
}

std::string names_of_devices() {
  std::vector<std::string> names;
  for (const KnownDevice& device : known_devices()) names.emplace_back(device.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<const KnownDevice*> devices_of(const std::string& text) {
  constexpr int kMaxCount = 65536;
  std::vector<const KnownDevice*> list;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    int count = 1;
    std::string name = word;
    const auto by = word.find('x');
    if (by != std::string::npos && by > 0) {
      const auto [end, error] = std::from_chars(word.data(), word.data() + by, count);
      if (error != std::errc{} || end != word.data() + by || count < 1 || count > kMaxCount) refuse(word);
      name = word.substr(by + 1);
    }
    const KnownDevice* device = find_device(name);
    if (device == nullptr) refuse(word);
    list.insert(list.end(), count, device);
  }
  if (list.empty()) refuse(text);
  return list;
}

Rates rates_of(const KnownDevice& device, Precision precision) {
  const double peak = precision == Precision::fp32   ? device.fp32_flops
                      : precision == Precision::tf32 ? device.tf32_flops
                                                     : device.half_flops;
  const double memory = kShareOfMemory * device.memory_bytes_per_second;
  return {.device = device.name,
          .matmul_flops = kShareOfFlops * peak,
          .conv_flops = kShareOfFlops * peak,
          .element_bytes = memory,
          .add_bytes = memory,
          .update_bytes = memory,
          .message_seconds = kGpuMessageSeconds,
          .message_bytes = kShareOfLink * device.link_bytes_per_second,
          .part_bytes = kPartBytes,
          .kernel_seconds = kLaunchSeconds,
          .memory = static_cast<std::int64_t>(device.memory_bytes),
          .cores = 1,
          .uses_host_cores = false};
}

}  // namespace lockstep::plan
