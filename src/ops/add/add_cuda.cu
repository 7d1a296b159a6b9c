#include "device/cuda/cuda_grid.cuh"
#include "ops/add/add_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_add_cuda(const KernelRequest& request) {
  return make_add_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
