// The first GPU of this machine, for tests that skip where there is none.
#pragma once

#include <memory>
#include <string>

#include "backend/gpu/cuda_module.hpp"
#include "backend/gpu/driver.hpp"
#include "backend/gpu/gpu.hpp"

namespace lockstep {

struct ThisGpu {
  /// Why there is none; empty: there is.
  std::string open() {
    const auto driver = backend::ask_driver();
    if (driver.state != backend::DriverState::ready) {
      return "no GPU: " + (driver.problem.empty() ? "the driver sees none" : driver.problem);
    }
    module = backend::open_module();
    if (!module) return "no CUDA module: " + module.problem;
    name = driver.gpus.front().name;
    gpu = backend::make_gpu(module, driver.gpus.front().ordinal, {"this host", 0, name});
    gpu->make_current();
    return "";
  }

  backend::CudaModule module;
  std::shared_ptr<backend::Gpu> gpu;  ///< destroyed before the module
  std::string name;
};

}  // namespace lockstep
