// The gather kernels for GPUs.
#include "data/input/gather_kernels.hpp"
#include "device/cuda/cuda_grid.cuh"

/// The caller owns the result.
extern "C" __attribute__((visibility("default"))) lockstep::input::GatherKernels* lockstep_cuda_make_gather_kernels() {
  return new lockstep::input::GridGatherKernels<lockstep::device::CudaGrid>;
}
