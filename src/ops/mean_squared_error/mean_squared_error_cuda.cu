#include "device/cuda/cuda_grid.cuh"
#include "ops/mean_squared_error/mean_squared_error_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_mean_squared_error_cuda(const KernelRequest& request) {
  return make_mean_squared_error_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
