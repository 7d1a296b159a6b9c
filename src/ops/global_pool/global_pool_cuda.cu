#include "device/cuda/cuda_grid.cuh"
#include "ops/global_pool/global_pool_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_global_pool_cuda(const KernelRequest& request) {
  return make_global_pool_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
