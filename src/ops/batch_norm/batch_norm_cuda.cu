#include "device/cuda/cuda_grid.cuh"
#include "ops/batch_norm/batch_norm_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_batch_norm_cuda(const KernelRequest& request) {
  return make_batch_norm_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
