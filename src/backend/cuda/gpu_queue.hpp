// GpuQueue: what a GPU kernel is given with its call: the stream that it goes to, the libraries' handles, and the
// place that errors name. One for each stream of a rank; not used by two threads at once.
#pragma once

#include <utility>

#include "backend/cuda/handles.hpp"

namespace lockstep {

class GpuQueue {
 public:
  /// The current GPU of the calling thread is the rank's.
  explicit GpuQueue(backend::GpuPlace place)
      : place_(std::move(place)),
        stream_(backend::make_stream(place_)),
        cublas_lt_(backend::make_cublas_lt(place_)),
        cudnn_(backend::make_cudnn(stream_.get(), place_)) {}

  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }
  [[nodiscard]] cublasLtHandle_t cublas_lt() const { return cublas_lt_.get(); }
  [[nodiscard]] cudnnHandle_t cudnn() const { return cudnn_.get(); }
  [[nodiscard]] const backend::GpuPlace& place() const { return place_; }
  /// Before each op: what errors name from here on.
  void enter(std::uint64_t step, std::string op) {
    place_.step = step;
    place_.op = std::move(op);
  }
  /// After a launch: a bad configuration shows here, what the kernel does wrong later.
  void check_launch() const { backend::check_gpu(cudaGetLastError(), "the launch of a kernel", place_); }

 private:
  backend::GpuPlace place_;
  backend::CudaStream stream_;
  backend::CublasLt cublas_lt_;
  backend::Cudnn cudnn_;
};

}  // namespace lockstep
