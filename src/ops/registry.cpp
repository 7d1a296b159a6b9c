#include "ops/registry.hpp"

#include "device/gpu/cuda_module.hpp"
#include "lockstep/error.hpp"

namespace lockstep::ops {

void add_gpu_kernels(const device::CudaModule& module, OpRegistry& registry) {
  auto* const add = module.library.find<void(OpRegistry&)>(device::kModuleRegisterKernels);
  LOCKSTEP_CHECK(add != nullptr, "a CUDA module of this build has kernels");
  add(registry);
}

}  // namespace lockstep::ops
