#include "device/cuda/cuda_grid.cuh"
#include "ops/embedding/embedding_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_embedding_cuda(const KernelRequest& request) {
  return make_embedding_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
