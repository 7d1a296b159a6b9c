// CudaGpu's own kernels.
#include "device/cuda/cuda_gpu.hpp"
#include "device/cuda/cuda_grid.cuh"
#include "device/gpu/element_kernels.hpp"

namespace lockstep::device {

void CudaGpu::add(Stream stream, DType dtype, const void* left, const void* right, void* out, std::int64_t n) {
  launch_add<CudaGrid>(kernel_stream(stream), dtype, left, right, out, n);
}

void CudaGpu::cast(Stream stream, Cast cast, DType type, const void* from, void* to, std::int64_t n) {
  launch_cast<CudaGrid>(kernel_stream(stream), cast, type, from, to, n);
}

void CudaGpu::scale(Stream stream, float* values, const float* factors, std::int64_t n, std::int64_t columns) {
  CudaGrid::each(kernel_stream(stream), n, ScaleRowsFunctor{values, factors, Divisor(columns)});
}

}  // namespace lockstep::device
