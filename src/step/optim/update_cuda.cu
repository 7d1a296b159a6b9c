// The update's GPU kernels.
#include "device/cuda/cuda_grid.cuh"
#include "step/optim/grid_update_kernels.hpp"

/// The caller owns the result.
extern "C" __attribute__((visibility("default"))) lockstep::optim::UpdateKernels* lockstep_cuda_make_update_kernels() {
  return new lockstep::optim::GridUpdateKernels<lockstep::device::CudaGrid>;
}
