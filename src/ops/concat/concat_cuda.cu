#include "device/cuda/cuda_grid.cuh"
#include "ops/concat/concat_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_concat_cuda(const KernelRequest& request) {
  return make_concat_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
