#include "backend/cuda/cuda_grid.cuh"
#include "ops/embedding/embedding_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_embedding_cuda(const KernelRequest& request) {
  return make_embedding_grid<backend::CudaGrid>(request);
}

}  // namespace lockstep::ops
