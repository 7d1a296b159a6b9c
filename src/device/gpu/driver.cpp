// The few functions used here have had these types since CUDA 3.2, so cuda.h, which would declare them, is not needed.
#include "device/gpu/driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <tuple>

#include "core/shared_library.hpp"

namespace lockstep::device {

namespace {

using Result = int;  // CUresult
using Device = int;  // CUdevice
constexpr Result kSuccess = 0, kNoDevice = 100, kNotReady = 802;
constexpr int kMajor = 75, kMinor = 76;                        // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
constexpr int kClock = 13, kMemoryClock = 36;                  // CU_DEVICE_ATTRIBUTE_*CLOCK_RATE, kHz
constexpr int kMultiprocessors = 16;                           // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
constexpr int kPciBus = 33, kPciDevice = 34, kPciDomain = 50;  // CU_DEVICE_ATTRIBUTE_PCI_*

struct Functions {
  Result (*init)(unsigned) = nullptr;
  Result (*version)(int*) = nullptr;
  Result (*count)(int*) = nullptr;
  Result (*get)(Device*, int) = nullptr;
  Result (*name)(char*, int, Device) = nullptr;
  Result (*memory)(std::size_t*, Device) = nullptr;
  Result (*attribute)(int*, int, Device) = nullptr;
  Result (*error_name)(Result, const char**) = nullptr;
};

/// A driver call that failed; caught in ask_driver().
struct Failure {
  const char* call;
  Result code;
};

void check(Result code, const char* call) {
  if (code != kSuccess) throw Failure{call, code};
}

template <class Function>
bool find(const SharedLibrary& driver, const char* name, Function*& function) {
  function = driver.find<Function>(name);
  return function != nullptr;
}

bool find_all(const SharedLibrary& driver, Functions& f) {
  return find(driver, "cuInit", f.init) && find(driver, "cuDriverGetVersion", f.version) &&
         find(driver, "cuDeviceGetCount", f.count) && find(driver, "cuDeviceGet", f.get) &&
         find(driver, "cuDeviceGetName", f.name) && find(driver, "cuDeviceTotalMem_v2", f.memory) &&
         find(driver, "cuDeviceGetAttribute", f.attribute) && find(driver, "cuGetErrorName", f.error_name);
}

int attribute(const Functions& f, int which, Device device) {
  int value = 0;
  check(f.attribute(&value, which, device), "cuDeviceGetAttribute");
  return value;
}

/// 0 if this driver does not know it: newer ones have dropped some.
int attribute_if_known(const Functions& f, int which, Device device) {
  int value = 0;
  return f.attribute(&value, which, device) == kSuccess ? value : 0;
}

/// With its sort key: domain, bus, device.
using Placed = std::pair<std::tuple<int, int, int>, GpuInfo>;

Placed ask_gpu(const Functions& f, int ordinal) {
  Device device = 0;
  check(f.get(&device, ordinal), "cuDeviceGet");
  Placed placed;
  auto& [place, gpu] = placed;
  gpu.ordinal = ordinal;
  std::array<char, 256> name{};
  check(f.name(name.data(), static_cast<int>(name.size()) - 1, device), "cuDeviceGetName");
  gpu.name = name.data();
  std::size_t bytes = 0;
  check(f.memory(&bytes, device), "cuDeviceTotalMem");
  gpu.memory_bytes = bytes;
  gpu.major = attribute(f, kMajor, device);
  gpu.minor = attribute(f, kMinor, device);
  gpu.multiprocessors = attribute_if_known(f, kMultiprocessors, device);
  gpu.clock_mhz = attribute_if_known(f, kClock, device) / 1000;
  gpu.memory_clock_mhz = attribute_if_known(f, kMemoryClock, device) / 1000;
  place = {attribute(f, kPciDomain, device), attribute(f, kPciBus, device), attribute(f, kPciDevice, device)};
  gpu.pci_bus = fmt::format("{:04x}:{:02x}:{:02x}.0", std::get<0>(place), std::get<1>(place), std::get<2>(place));
  return placed;
}

void ask(const Functions& f, DriverFacts& facts) {
  check(f.version(&facts.cuda_version), "cuDriverGetVersion");
  const Result started = f.init(0);
  int count = 0;
  if (started != kNoDevice) {
    check(started, "cuInit");
    check(f.count(&count), "cuDeviceGetCount");
  }
  std::vector<Placed> placed;
  for (int i = 0; i < count; ++i) placed.push_back(ask_gpu(f, i));
  std::sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) { return a.first < b.first; });
  for (auto& [place, gpu] : placed) facts.gpus.push_back(std::move(gpu));
  facts.state = count == 0 ? DriverState::no_gpu : DriverState::ready;
}

/// Multiply-adds of two-byte numbers per cycle by a multiprocessor's tensor cores; 0: unknown.
int tensor_multiply_adds(const GpuInfo& gpu) {
  if (gpu.major == 8 && gpu.minor == 0) return 1024;  // A100
  if (gpu.major == 9 && gpu.minor == 0) return 2048;  // H100, H200
  if (gpu.major == 10) return 4096;                   // B200
  return 0;
}

}  // namespace

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string text_of(const GpuInfo& gpu) {
  return fmt::format("{}, {:.1f} GiB, compute capability {}.{}, {}", gpu.name,
                     static_cast<double>(gpu.memory_bytes) / (1 << 30), gpu.major, gpu.minor, gpu.pci_bus);
}

double peak_flops(const GpuInfo& gpu, Precision precision) {
  constexpr int kMultiplyAdd = 2;
  int a_cycle = 0;  // multiply-adds per multiprocessor
  if (precision == Precision::fp32) {
    a_cycle = gpu.major == 8 && gpu.minor == 0 ? 64 : 128;  // A100; all later ones
  } else {
    a_cycle = tensor_multiply_adds(gpu) / (precision == Precision::tf32 ? 2 : 1);
  }
  return (kMultiplyAdd * a_cycle * gpu.multiprocessors) * 1e6 * gpu.clock_mhz;
}

DriverFacts ask_driver() {
  DriverFacts facts;
  const auto driver = SharedLibrary::open("libcuda.so.1", facts.problem);
  if (!driver) return facts;
  facts.state = DriverState::broken;
  Functions functions;
  if (!find_all(driver, functions)) {
    facts.problem = "libcuda.so.1 lacks a function that every driver has";
    return facts;
  }
  try {
    ask(functions, facts);
  } catch (const Failure& failure) {
    const char* name = nullptr;
    if (functions.error_name(failure.code, &name) != kSuccess || name == nullptr) name = "unknown error";
    facts.problem = fmt::format("{} failed with {} ({})", failure.call, failure.code, name);
    facts.gpus.clear();
    if (failure.code == kNotReady) {
      facts.remedy =
          "GPUs with NVSwitch need NVIDIA's fabric manager: start it with systemctl start nvidia-fabricmanager, of the "
          "driver's version";
    }
  }
  return facts;
}

}  // namespace lockstep::device
