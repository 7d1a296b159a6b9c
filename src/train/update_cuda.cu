// The update's kernels for GPUs. Nothing calls them yet: training on GPUs is not in this version (docs/gpu.md).
#include "backend/cuda/cuda_grid.cuh"
#include "train/update_grid.hpp"

namespace lockstep::backend {

template __global__ void run_elements(std::int64_t, train::DivideBody);
template __global__ void run_elements(std::int64_t, train::ScaleBody);
template __global__ void run_elements(std::int64_t, train::BlendBody);
template __global__ void run_elements(std::int64_t, train::SgdPlainBody);
template __global__ void run_elements(std::int64_t, train::SgdMomentumBody);
template __global__ void run_elements(std::int64_t, train::AdamBody);

}  // namespace lockstep::backend
