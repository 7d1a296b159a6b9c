#include "device/cuda/cuda_grid.cuh"
#include "ops/layer_norm/layer_norm_grid.hpp"

namespace lockstep::ops {

std::unique_ptr<Kernel> make_layer_norm_cuda(const KernelRequest& request) {
  return make_layer_norm_grid<device::CudaGrid>(request);
}

}  // namespace lockstep::ops
