#include "device/cuda/cuda_grid.cuh"
#include "ops/top5/top5_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_top5_cuda(const KernelRequest& request) {
  return make_top5_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
