#include "backend/cuda/cuda_grid.cuh"
#include "ops/add/add_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_add_cuda(const KernelRequest& request) {
  return make_add_grid<backend::CudaGrid>(request);
}

}  // namespace lockstep::ops
