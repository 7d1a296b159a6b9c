// GpuStream: what a GPU kernel gets with its call: the stream to launch on, the libraries' handles, and the place to
// name in errors. One for each kernel stream of a rank; not used by two threads at once.
#pragma once

#include <string>
#include <utility>

#include "device/cuda/cudnn_target.hpp"
#include "device/cuda/handles.hpp"

namespace lockstep {

class GpuStream {
 public:
  /// The calling thread's current GPU must be the rank's; `stream` is on it, and must outlive this object. `plans`:
  /// shared by all streams of this GPU.
  GpuStream(cudaStream_t stream, device::GpuPlace place, device::CudnnPlans& plans)
      : place_(std::move(place)),
        stream_(stream),
        cublas_lt_(device::make_cublas_lt(place_)),
        cudnn_(device::make_cudnn(stream_, place_)),
        cudnn_plans_(plans) {}

  cudaStream_t cuda() const { return stream_; }
  cublasLtHandle_t cublas_lt() const { return cublas_lt_.get(); }
  cudnnHandle_t cudnn() const { return cudnn_.get(); }
  device::CudnnTarget cudnn_target() const { return {.handle = cudnn_.get(), .made = &cudnn_plans_}; }
  const device::GpuPlace& place() const { return place_; }
  /// Call before each op: sets the step and op that errors name.
  void enter(std::uint64_t step, const std::string& op) {
    place_.step = step;
    place_.op = op;
  }
  /// Call after a launch: a bad configuration is reported here, faults of the kernel itself later.
  void check_launch() const { device::check_gpu(cudaGetLastError(), "the launch of a kernel", place_); }

 private:
  device::GpuPlace place_;
  cudaStream_t stream_;
  device::CublasLt cublas_lt_;
  device::Cudnn cudnn_;
  device::CudnnPlans& cudnn_plans_;
};

}  // namespace lockstep
