#include "device/cuda/handles.hpp"

#include "device/cuda/nvrtc.hpp"

namespace lockstep::device {

CudaStream make_stream(const GpuPlace& place) {
  cudaStream_t stream = nullptr;
  LOCKSTEP_GPU(place, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return CudaStream(stream);
}

CudaEvent make_event(const GpuPlace& place) {
  cudaEvent_t event = nullptr;
  LOCKSTEP_GPU(place, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return CudaEvent(event);
}

DeviceMemory make_device_memory(std::size_t bytes, const GpuPlace& place) {
  void* memory = nullptr;
  LOCKSTEP_GPU(place, cudaMalloc(&memory, bytes));
  return DeviceMemory(memory);
}

PinnedMemory make_pinned_memory(std::size_t bytes, const GpuPlace& place) {
  void* memory = nullptr;
  LOCKSTEP_GPU(place, cudaHostAlloc(&memory, bytes, cudaHostAllocDefault));
  return PinnedMemory(memory);
}

CublasLt make_cublas_lt(const GpuPlace& place) {
  cublasLtHandle_t handle = nullptr;
  LOCKSTEP_GPU(place, cublasLtCreate(&handle));
  return CublasLt(handle);
}

Cudnn make_cudnn(cudaStream_t stream, const GpuPlace& place) {
  open_nvrtc_builtins();
  cudnnHandle_t raw = nullptr;
  LOCKSTEP_GPU(place, cudnnCreate(&raw));
  Cudnn handle(raw);
  LOCKSTEP_GPU(place, cudnnSetStream(handle.get(), stream));
  return handle;
}

}  // namespace lockstep::device
