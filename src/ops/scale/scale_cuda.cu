#include "device/cuda/cuda_grid.cuh"
#include "ops/scale/scale_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_scale_cuda(const KernelRequest& request) {
  return make_scale_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
