#include "device/cuda/cuda_grid.cuh"
#include "ops/softmax/softmax_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_softmax_cuda(const KernelRequest& request) {
  return make_softmax_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
