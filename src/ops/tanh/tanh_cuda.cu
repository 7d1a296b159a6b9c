#include "device/cuda/cuda_grid.cuh"
#include "ops/tanh/tanh_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_tanh_cuda(const KernelRequest& request) {
  return make_tanh_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
