#include "device/cuda/cuda_grid.cuh"
#include "ops/relu/relu_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_relu_cuda(const KernelRequest& request) {
  return make_relu_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
