#include "backend/cuda/cuda_grid.cuh"
#include "ops/mul/mul_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_mul_cuda(const KernelRequest& request) {
  return make_mul_grid<backend::CudaGrid>(request);
}

}  // namespace lockstep::ops
