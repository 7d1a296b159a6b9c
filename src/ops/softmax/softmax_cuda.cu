#include "backend/cuda/cuda_grid.cuh"
#include "ops/softmax/softmax_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_softmax_cuda(const KernelRequest& request) {
  return make_softmax_grid<backend::CudaGrid>(request);
}

}  // namespace lockstep::ops
