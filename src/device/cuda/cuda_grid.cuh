// CudaGrid: the grids of device/gpu/grid.hpp on a GPU.
#pragma once

#include <cstdint>

#include "device/cuda/gpu_stream.hpp"
#include "device/gpu/grid.hpp"
#include "device/gpu/grid_size.hpp"

namespace lockstep::device {

/// Sixteen neighbouring threads of a warp: half of it, so a mask says which threads take part in shuffles.
class CudaGroup {
 public:
  __device__ explicit CudaGroup(int thread)
      : lane_(thread % kGroupLanes), mask_(0xffffU << (thread % 32 / kGroupLanes * kGroupLanes)) {}

  template <class Function>
  __device__ void each(std::int64_t n, const Function& function) const {
    for_lane(lane_, n, function);
  }
  template <class Function>
  __device__ float sum(std::int64_t n, const Function& function) const {
    float total = sum_for_lane(lane_, n, function);
    for (int distance = kGroupLanes / 2; distance > 0; distance /= 2) total += from_lane(total, distance);
    return total;
  }
  template <class Function>
  __device__ float maximum(std::int64_t n, const Function& function) const {
    float best = -__builtin_inff();
    for_lane(lane_, n, [&](std::int64_t i) { best = larger(function(i), best); });
    for (int distance = kGroupLanes / 2; distance > 0; distance /= 2) best = larger(best, from_lane(best, distance));
    return __shfl_sync(mask_, best, 0, kGroupLanes);  // +0 and -0 compare equal: all lanes get lane 0's
  }
  __device__ void barrier() const { __syncwarp(mask_); }
  template <class Function>
  __device__ void once(const Function& function) const {
    if (lane_ == 0) function();
  }

 private:
  static __device__ float larger(float a, float b) { return a > b ? a : b; }
  __device__ float from_lane(float value, int distance) const {
    return __shfl_xor_sync(mask_, value, distance, kGroupLanes);
  }
  int lane_;
  unsigned mask_;
};

template <class Functor>
__global__ void __launch_bounds__(kBlockThreads) run_elements(std::int64_t n, Functor functor) {
  element_at(blockIdx.x, static_cast<int>(threadIdx.x), n, functor);
}

template <class Functor>
__global__ void __launch_bounds__(kBlockThreads) run_rows(std::int64_t count, Functor functor) {
  CudaGroup lanes(static_cast<int>(threadIdx.x));
  row_at(blockIdx.x, static_cast<int>(threadIdx.x) / kGroupLanes, count, lanes, functor);
}

struct CudaGrid {
  template <class Functor>
  static void each(GpuStream* stream, std::int64_t n, const Functor& functor) {
    if (n == 0) return;  // an empty grid is an error
    run_elements<<<grid_size(blocks_of_elements<Functor>(n)), kBlockThreads, 0, stream->cuda()>>>(n, functor);
    stream->check_launch();
  }
  template <class Functor>
  static void rows(GpuStream* stream, std::int64_t count, const Functor& functor) {
    if (count == 0) return;
    run_rows<<<grid_size(blocks_of_rows(count)), kBlockThreads, 0, stream->cuda()>>>(count, functor);
    stream->check_launch();
  }
};

}  // namespace lockstep::device
