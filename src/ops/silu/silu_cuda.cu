#include "device/cuda/cuda_grid.cuh"
#include "ops/silu/silu_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_silu_cuda(const KernelRequest& request) {
  return make_silu_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
