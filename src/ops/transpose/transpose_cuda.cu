#include "device/cuda/cuda_grid.cuh"
#include "ops/transpose/transpose_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_transpose_cuda(const KernelRequest& request) {
  return make_transpose_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
