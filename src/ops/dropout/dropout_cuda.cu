#include "backend/cuda/cuda_grid.cuh"
#include "ops/dropout/dropout_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_dropout_cuda(const KernelRequest& request) {
  return make_dropout_grid<backend::CudaGrid>(request);
}

}  // namespace lockstep::ops
