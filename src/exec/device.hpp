// What a rank computes on: the CPU, or one GPU.
#pragma once

#include <memory>
#include <string>

#include "backend/device.hpp"
#include "backend/gpu/gpu_lane.hpp"
#include "backend/gpu/gpu_profiler.hpp"
#include "lockstep/op.hpp"

namespace lockstep::exec {

/// Cheap to copy.
struct Device {
  backend::DeviceInfo info;
  std::shared_ptr<backend::GpuLanes> lanes;        ///< null on the CPU
  std::shared_ptr<const OpRegistry> gpu_kernels;   ///< the CUDA module's, for the built-in ops; null on the CPU
  std::string place;                               ///< of a GPU, for errors: "node7, rank 3, GPU 1 (...)"
  std::string pci_bus;                             ///< of a GPU: "0000:3b:00.0"
  double peak_flops = 0;                           ///< of a GPU, in fp32, a second; 0: not known
  std::shared_ptr<backend::GpuProfiler> profiler;  ///< of a GPU

  [[nodiscard]] DeviceKind kind() const { return info.kind; }
  [[nodiscard]] bool is_gpu() const { return lanes != nullptr; }
};

[[nodiscard]] inline Device cpu_device() {
  return {backend::cpu_info(), nullptr, nullptr, "", "", 0, nullptr};
}

}  // namespace lockstep::exec
