#include "backend/cuda/cuda_grid.cuh"
#include "ops/sigmoid/sigmoid_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_sigmoid_cuda(const KernelRequest& request) {
  return make_sigmoid_grid<backend::CudaGrid>(request);
}

}  // namespace lockstep::ops
