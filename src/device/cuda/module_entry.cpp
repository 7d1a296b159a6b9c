// The functions that the program calls when it opens the module (device/gpu/cuda_module.hpp).
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <fmt/format.h>

#include <string>

#include "device/cuda/cuda_gpu.hpp"
#include "device/cuda/cupti_profiler.hpp"
#include "lockstep/version.hpp"

#define LOCKSTEP_EXPORT extern "C" __attribute__((visibility("default")))

LOCKSTEP_EXPORT const char* lockstep_cuda_build_id() {
  return lockstep::build_id();
}

LOCKSTEP_EXPORT int lockstep_cuda_version() {
  return CUDART_VERSION;
}

LOCKSTEP_EXPORT void lockstep_cuda_libraries(std::string& text) {
  int runtime = 0;
  (void)cudaRuntimeGetVersion(&runtime);
  text = fmt::format("CUDA runtime {}, cuBLASLt {}, cuDNN {}", runtime, cublasLtGetVersion(), cudnnGetVersion());
}

/// The caller owns the result.
LOCKSTEP_EXPORT lockstep::device::Gpu* lockstep_cuda_make_gpu(int ordinal, const lockstep::device::GpuPlace& place) {
  return new lockstep::device::CudaGpu(ordinal, place);
}

/// The caller owns the result.
LOCKSTEP_EXPORT lockstep::device::GpuProfiler* lockstep_cuda_make_profiler() {
  return new lockstep::device::CuptiProfiler;
}
