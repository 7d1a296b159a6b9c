#include "device/cuda/cuda_grid.cuh"
#include "ops/rms_norm/rms_norm_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_rms_norm_cuda(const KernelRequest& request) {
  return make_rms_norm_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
