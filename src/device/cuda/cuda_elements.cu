// CudaGpu's own kernels.
#include "device/cuda/cuda_gpu.hpp"
#include "device/cuda/cuda_grid.cuh"
#include "device/gpu/element_kernels.hpp"

namespace lockstep::device {

void CudaGpu::add(Stream stream, DType dtype, const void* left, const void* right, void* out, std::int64_t n) {
  put_add<CudaGrid>(queue(stream), dtype, left, right, out, n);
}

void CudaGpu::cast(Stream stream, Cast cast, DType narrow, const void* from, void* to, std::int64_t n) {
  put_cast<CudaGrid>(queue(stream), cast, narrow, from, to, n);
}

void CudaGpu::scale(Stream stream, float* values, const float* factor, std::int64_t n) {
  CudaGrid::each(queue(stream), n, ScaleBody{values, factor});
}

}  // namespace lockstep::device
