#include "backend/cuda/cuda_grid.cuh"
#include "ops/attention/attention_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_attention_cuda(const KernelRequest& request) {
  return make_attention_grid<backend::CudaGrid>(request);
}

}  // namespace lockstep::ops
