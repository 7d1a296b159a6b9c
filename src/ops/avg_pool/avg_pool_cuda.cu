#include "device/cuda/cuda_grid.cuh"
#include "ops/avg_pool/avg_pool_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_avg_pool_cuda(const KernelRequest& request) {
  return make_avg_pool_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
