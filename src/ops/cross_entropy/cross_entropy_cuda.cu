#include "device/cuda/cuda_grid.cuh"
#include "ops/cross_entropy/cross_entropy_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_cross_entropy_cuda(const KernelRequest& request) {
  return make_cross_entropy_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
