#include "device/cuda/cuda_grid.cuh"
#include "ops/accuracy/accuracy_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_accuracy_cuda(const KernelRequest& request) {
  return make_accuracy_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
