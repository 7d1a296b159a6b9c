#include "backend/cuda/cuda_grid.cuh"
#include "ops/conv/conv_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_conv_cuda(const KernelRequest& request) {
  return make_conv_grid<backend::CudaGrid>(request);
}

}  // namespace lockstep::ops
