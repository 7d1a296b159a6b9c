// CudaGpu's one kernel of its own.
#include "backend/cuda/cuda_gpu.hpp"
#include "backend/cuda/cuda_grid.cuh"

namespace lockstep::backend {

void CudaGpu::add(Stream stream, const float* left, const float* right, float* out, std::int64_t n) {
  CudaGrid::each(queue(stream), n, AddBody{left, right, out});
}

}  // namespace lockstep::backend
