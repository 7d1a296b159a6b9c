#include "device/cuda/cuda_grid.cuh"
#include "ops/gelu/gelu_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_gelu_cuda(const KernelRequest& request) {
  return make_gelu_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
