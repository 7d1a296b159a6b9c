#include "cuda/described_gpu.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstring>

#include "device/cuda/cudnn_frontend.hpp"
#include "lockstep/error.hpp"

namespace {

const lockstep::device::DescribedGpu* described = &lockstep::device::kH100;

}  // namespace

// Replaces the runtime's own function, which would look for a driver. The frontend calls no other.
extern "C" cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
extern "C" cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int /*device*/) {
  *properties = {};
  std::strncpy(properties->name, described->name, sizeof properties->name - 1);
  properties->major = described->architecture / 10;
  properties->minor = described->architecture % 10;
  properties->multiProcessorCount = described->processors;
  return cudaSuccess;
}

namespace lockstep::device {

CudnnTarget describe(const DescribedGpu& gpu) {
  const std::string text = fmt::format(
      R"({{"deviceName": "{}", "deviceVer": {}, "multiProcessorCount": {}, "smClockRateKHz": {},
           "memClockRateKHz": {}, "maxSharedMemoryPerBlockOptin": {}, "l2CacheSize": {}, "cudaDeviceId": 0,
           "driverVer": 13000, "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
           "regsPerBlock": 65536, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
           "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32,
           "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "totalGlobalMem": 85029158912, "pciDeviceId": 0,
           "isTccDriver": 0, "supportCoopLaunch": 1}})",
      gpu.name, gpu.architecture * 10, gpu.processors, gpu.clock_khz, gpu.memory_clock_khz, gpu.shared_memory,
      gpu.cache);
  auto properties = std::make_shared<cudnn_frontend::DeviceProperties>();
  auto status = properties->deserialize({text.begin(), text.end()});
  LOCKSTEP_CHECK(status.is_good(), "cuDNN takes the description: " + status.get_message());
  described = &gpu;
  return {.described = std::move(properties), .architecture = gpu.architecture};
}

}  // namespace lockstep::device
