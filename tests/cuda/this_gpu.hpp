// The first GPU of this machine, for tests that are skipped if there is none.
#pragma once

#include <memory>
#include <string>

#include "device/gpu/cuda_module.hpp"
#include "device/gpu/driver.hpp"
#include "device/gpu/gpu.hpp"

namespace lockstep {

struct ThisGpu {
  /// Why there is none; empty: there is one.
  std::string open() {
    const auto driver = device::ask_driver();
    if (driver.state != device::DriverState::ready) {
      return "no GPU: " + (driver.problem.empty() ? "the driver sees none" : driver.problem);
    }
    module = device::open_module();
    if (!module) return "no CUDA module: " + module.problem;
    name = driver.gpus.front().name;
    gpu = device::make_gpu(module, driver.gpus.front().ordinal, {"this host", 0, name});
    gpu->make_current();
    return "";
  }

  device::CudaModule module;
  std::shared_ptr<device::Gpu> gpu;  ///< destroyed before the module
  std::string name;
};

}  // namespace lockstep
