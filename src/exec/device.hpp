// What a rank computes on: the CPU, or one GPU.
#pragma once

#include <memory>
#include <string>

#include "device/device.hpp"
#include "device/gpu/cuda_module.hpp"
#include "device/gpu/driver.hpp"
#include "device/gpu/gpu_lane.hpp"
#include "device/gpu/gpu_profiler.hpp"
#include "lockstep/op.hpp"

namespace lockstep::exec {

/// Cheap to copy.
struct Device {
  device::DeviceInfo info;
  std::shared_ptr<device::GpuLanes> lanes;           ///< null on the CPU
  std::shared_ptr<const OpRegistry> gpu_kernels;     ///< the CUDA module's, for the built-in ops; null on the CPU
  bool graphs = true;                                ///< launch kernels of a GPU in graphs, not one by one
  device::GpuInfo gpu;                               ///< what the driver says of it
  int driver_cuda_version = 0;                       ///< the latest CUDA that the driver can run: 13000 is 13.0
  std::shared_ptr<const device::CudaModule> module;  ///< where both are from; null on the CPU, and for fakes
  device::GpuPlace gpu_place;                        ///< for errors; without step and op
  double peak_flops = 0;                             ///< of a GPU, in the job's precision, a second; 0: not known
  std::shared_ptr<device::GpuProfiler> profiler;     ///< of a GPU

  [[nodiscard]] DeviceKind kind() const { return info.kind; }
  [[nodiscard]] bool is_gpu() const { return lanes != nullptr; }
};

[[nodiscard]] inline Device cpu_device() {
  return {.info = device::cpu_info()};
}

}  // namespace lockstep::exec
