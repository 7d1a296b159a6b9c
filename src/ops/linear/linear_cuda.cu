#include "backend/cuda/cuda_grid.cuh"
#include "ops/linear/linear_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_linear_cuda(const KernelRequest& request) {
  return make_linear_grid<backend::CudaGrid>(request);
}

}  // namespace lockstep::ops
