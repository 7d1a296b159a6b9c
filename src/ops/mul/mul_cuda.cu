#include "device/cuda/cuda_grid.cuh"
#include "ops/mul/mul_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_mul_cuda(const KernelRequest& request) {
  return make_mul_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
