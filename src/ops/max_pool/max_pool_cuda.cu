#include "device/cuda/cuda_grid.cuh"
#include "ops/max_pool/max_pool_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_max_pool_cuda(const KernelRequest& request) {
  return make_max_pool_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
