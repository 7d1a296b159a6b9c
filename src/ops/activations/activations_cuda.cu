#include "device/cuda/cuda_grid.cuh"
#include "ops/activations/activations_grid.hpp"

namespace lockstep::ops {

#define LOCKSTEP_MAKE_CUDA(Formula, op)                                    \
  std::unique_ptr<Kernel> make_##op##_cuda(const KernelRequest& request) { \
    return make_activation_grid<device::CudaGrid, Formula>(request);       \
  }
LOCKSTEP_ACTIVATIONS(LOCKSTEP_MAKE_CUDA)
#undef LOCKSTEP_MAKE_CUDA

}  // namespace lockstep::ops
