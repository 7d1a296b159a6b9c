// CUDA's objects, each in a move-only handle. The make_ functions throw errors that name the place; destructors report.
#pragma once

#include <cstddef>

#include "core/handle.hpp"
#include "device/cuda/check.hpp"

namespace lockstep::device {

struct StreamTraits {
  using Value = cudaStream_t;
  static void destroy(Value stream) noexcept { report_gpu(cudaStreamDestroy(stream), "cudaStreamDestroy"); }
};
struct EventTraits {
  using Value = cudaEvent_t;
  static void destroy(Value event) noexcept { report_gpu(cudaEventDestroy(event), "cudaEventDestroy"); }
};
struct GraphTraits {
  using Value = cudaGraph_t;
  static void destroy(Value graph) noexcept { report_gpu(cudaGraphDestroy(graph), "cudaGraphDestroy"); }
};
struct GraphExecTraits {
  using Value = cudaGraphExec_t;
  static void destroy(Value graph) noexcept { report_gpu(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy"); }
};
struct DeviceMemoryTraits {
  using Value = void*;
  static void destroy(Value memory) noexcept { report_gpu(cudaFree(memory), "cudaFree"); }
};
struct PinnedMemoryTraits {
  using Value = void*;
  static void destroy(Value memory) noexcept { report_gpu(cudaFreeHost(memory), "cudaFreeHost"); }
};
struct CublasLtTraits {
  using Value = cublasLtHandle_t;
  static void destroy(Value handle) noexcept { report_gpu(cublasLtDestroy(handle), "cublasLtDestroy"); }
};
struct CudnnTraits {
  using Value = cudnnHandle_t;
  static void destroy(Value handle) noexcept { report_gpu(cudnnDestroy(handle), "cudnnDestroy"); }
};

using CudaStream = Handle<StreamTraits>;
using CudaEvent = Handle<EventTraits>;
using CudaGraph = Handle<GraphTraits>;
using CudaGraphExec = Handle<GraphExecTraits>;
using DeviceMemory = Handle<DeviceMemoryTraits>;
using PinnedMemory = Handle<PinnedMemoryTraits>;
using CublasLt = Handle<CublasLtTraits>;
using Cudnn = Handle<CudnnTraits>;

[[nodiscard]] CudaStream make_stream(const GpuPlace& place);  ///< not synchronised with the default stream
[[nodiscard]] CudaEvent make_event(const GpuPlace& place);    ///< without timing, which would cost time
[[nodiscard]] DeviceMemory make_device_memory(std::size_t bytes, const GpuPlace& place);
[[nodiscard]] PinnedMemory make_pinned_memory(std::size_t bytes, const GpuPlace& place);
[[nodiscard]] CublasLt make_cublas_lt(const GpuPlace& place);
/// Tied to this stream.
[[nodiscard]] Cudnn make_cudnn(cudaStream_t stream, const GpuPlace& place);

/// Captures what `launch` enqueues on the stream, instead of running it, and makes it ready to be run repeatedly.
template <class Launch>
[[nodiscard]] CudaGraphExec make_graph(cudaStream_t stream, const GpuPlace& place, const Launch& launch) {
  LOCKSTEP_GPU(place, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  cudaGraph_t raw = nullptr;
  try {
    launch();
  } catch (...) {
    report_gpu(cudaStreamEndCapture(stream, &raw), "cudaStreamEndCapture");  // otherwise the stream would stay unusable
    const CudaGraph unfinished(raw);
    throw;
  }
  LOCKSTEP_GPU(place, cudaStreamEndCapture(stream, &raw));
  const CudaGraph graph(raw);
  cudaGraphExec_t runnable = nullptr;
  LOCKSTEP_GPU(place, cudaGraphInstantiate(&runnable, graph.get(), 0));
  return CudaGraphExec(runnable);
}

}  // namespace lockstep::device
