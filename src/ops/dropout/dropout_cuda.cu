#include "device/cuda/cuda_grid.cuh"
#include "ops/dropout/dropout_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_dropout_cuda(const KernelRequest& request) {
  return make_dropout_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
