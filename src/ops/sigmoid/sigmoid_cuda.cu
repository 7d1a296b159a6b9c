#include "device/cuda/cuda_grid.cuh"
#include "ops/sigmoid/sigmoid_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_sigmoid_cuda(const KernelRequest& request) {
  return make_sigmoid_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
