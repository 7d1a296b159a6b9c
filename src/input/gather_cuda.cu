// The gather kernels for GPUs.
#include "device/cuda/cuda_grid.cuh"
#include "input/gather_kernels.hpp"

/// The caller owns the result.
extern "C" __attribute__((visibility("default"))) lockstep::input::GatherKernels* lockstep_cuda_make_gather_kernels() {
  return new lockstep::input::GridGatherKernels<lockstep::device::CudaGrid>;
}
