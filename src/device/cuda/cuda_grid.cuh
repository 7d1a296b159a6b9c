// CudaGrid: the grids of device/gpu/grid.hpp on a GPU.
#pragma once

#include <cstdint>

#include "device/cuda/cuda_product.cuh"
#include "device/cuda/gpu_stream.hpp"
#include "device/gpu/grid.hpp"
#include "device/gpu/grid_size.hpp"

namespace lockstep::device {

/// Sixteen neighbouring threads of a warp: half of it, so a mask says which threads take part in shuffles.
class CudaGroup {
 public:
  /// Of one lane: LaneElements.
  template <class Elements>
  using Row = Elements;

  __device__ explicit CudaGroup(int thread)
      : lane_(thread % kGroupLanes), mask_(0xffffU << (thread % 32 / kGroupLanes * kGroupLanes)) {}

  template <class Function>
  __device__ void each(std::int64_t n, const Function& function) const {
    for_lane(lane_, n, function);
  }
  template <class Value, class Store>
  __device__ void each(std::int64_t n, const Value& value, const Store& store) const {
    for_lane(lane_, n, value, store);
  }
  template <class Elements, class Read>
  __device__ void read(Elements& row, int n, const Read& read) const {
    row.read(lane_, n, read);
  }
  template <class Elements, class Term>
  __device__ float sum(const Elements& row, int n, const Term& term) const {
    return sum_of_lanes(row.sum(lane_, n, term));
  }
  template <class Elements, class Term>
  __device__ float maximum(const Elements& row, int n, const Term& term) const {
    return maximum_of_lanes(row.maximum(lane_, n, term, larger));
  }
  template <class Function>
  __device__ float sum(std::int64_t n, const Function& function) const {
    return sum_of_lanes(sum_for_lane(lane_, n, function));
  }
  template <class Function>
  __device__ float maximum(std::int64_t n, const Function& function) const {
    float best = -__builtin_inff();
    for_lane(lane_, n, [&](std::int64_t i) { best = larger(function(i), best); });
    return maximum_of_lanes(best);
  }
  template <class T>
  __device__ void stage(const T* from, std::int64_t n, float* to) const {
    stage_for_lane<kGroupLanes>(lane_, n, from, to);
  }
  template <class T>
  __device__ void stage_product(const T* from, const float* factors, std::int64_t n, float* to) const {
    stage_product_for_lane<kGroupLanes>(lane_, n, from, factors, to);
  }
  template <class T, class Make>
  __device__ void write_packs(T* to, std::int64_t n, const Make& make) const {
    write_packs_for_lane<kGroupLanes>(lane_, n, to, make);
  }
  __device__ void barrier() const { __syncwarp(mask_); }
  template <class Function>
  __device__ void once(const Function& function) const {
    if (lane_ == 0) function();
  }

 private:
  static __device__ float larger(float a, float b) { return a > b ? a : b; }
  __device__ float sum_of_lanes(float total) const {
    for (int distance = kGroupLanes / 2; distance > 0; distance /= 2) total += from_lane(total, distance);
    return total;
  }
  __device__ float maximum_of_lanes(float best) const {
    for (int distance = kGroupLanes / 2; distance > 0; distance /= 2) best = larger(best, from_lane(best, distance));
    return __shfl_sync(mask_, best, 0, kGroupLanes);  // +0 and -0 compare equal: all lanes get lane 0's
  }
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

/// `step`: see staged_step().
template <class Functor>
__global__ void __launch_bounds__(kBlockThreads) run_staged_rows(std::int64_t count, int step, Functor functor) {
  extern __shared__ __align__(16) float staged[];
  CudaGroup lanes(static_cast<int>(threadIdx.x));
  const int group = static_cast<int>(threadIdx.x) / kGroupLanes, groups = static_cast<int>(blockDim.x) / kGroupLanes;
  const std::int64_t row = std::int64_t{blockIdx.x} * groups + group;
  if (row < count) functor(lanes, row, staged + group * step);
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
  template <class Functor>
  static void staged_rows(GpuStream* stream, std::int64_t count, std::int64_t floats, const Functor& functor) {
    if (count == 0) return;
    const int groups = staged_groups(floats, kBlockGroups), step = static_cast<int>(staged_step(floats));
    LOCKSTEP_CHECK(groups > 0, "a group's rows fit into shared memory");
    run_staged_rows<<<grid_size((count + groups - 1) / groups), groups * kGroupLanes, groups * step * sizeof(float),
                      stream->cuda()>>>(count, step, functor);
    stream->check_launch();
  }
  template <class Product>
  static void product(GpuStream* stream, const Product& product) {
    if (product.is_empty()) return;
    run_product<<<grid_size(blocks_of_product(product)), kBlockThreads, 0, stream->cuda()>>>(product);
    stream->check_launch();
  }
};

}  // namespace lockstep::device
