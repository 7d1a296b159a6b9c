// The owner's additions for GPUs. Nothing calls them yet: training on GPUs is not in this version (docs/gpu.md).
#include "backend/cuda/cuda_grid.cuh"
#include "comm/tree_add_grid.hpp"

namespace lockstep::comm {

template void add_slices<backend::CudaGrid>(GpuQueue* queue, const SlicePlan& plan, std::span<float* const> roots,
                                            float* received, float* sum);

}  // namespace lockstep::comm
