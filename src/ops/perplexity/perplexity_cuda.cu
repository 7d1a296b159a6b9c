#include "device/cuda/cuda_grid.cuh"
#include "ops/perplexity/perplexity_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_perplexity_cuda(const KernelRequest& request) {
  return make_perplexity_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
