#include "device/cuda/cuda_grid.cuh"
#include "ops/position_embedding/position_embedding_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_position_embedding_cuda(const KernelRequest& request) {
  return make_position_embedding_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
