// Every call of CUDA's libraries is wrapped in LOCKSTEP_GPU(place, call): a failure becomes an Error that names host,
// rank, GPU, step, op and the call itself.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include <string>

#include "device/gpu/gpu_place.hpp"

namespace lockstep::device {

/// The library's own text.
[[nodiscard]] std::string what_is(cudaError_t code);
[[nodiscard]] std::string what_is(cublasStatus_t code);
[[nodiscard]] std::string what_is(cudnnStatus_t code);

/// CUDA keeps a thread's last error until it is fetched. A reported error is fetched, so that the next launch is not
/// blamed for it.
inline void forget(cudaError_t /*reported*/) noexcept {
  (void)cudaGetLastError();
}
inline void forget(cublasStatus_t /*reported*/) noexcept {}
inline void forget(cudnnStatus_t /*reported*/) noexcept {}

/// Success is 0 in all of these libraries.
template <class Code>
void check_gpu(Code code, const char* call, const GpuPlace& place) {
  if (code == Code{}) return;
  forget(code);
  throw gpu_error(place, call, static_cast<int>(code), what_is(code));
}

/// For destructors: reports a failure on stderr, unless CUDA itself is already shutting down.
void report_gpu(cudaError_t code, const char* call) noexcept;
void report_gpu(cublasStatus_t code, const char* call) noexcept;
void report_gpu(cudnnStatus_t code, const char* call) noexcept;

}  // namespace lockstep::device

// The place is evaluated only if the call failed.
#define LOCKSTEP_GPU(place, call)                                   \
  do {                                                              \
    const auto lockstep_code = (call);                              \
    if (lockstep_code != decltype(lockstep_code){}) {               \
      ::lockstep::device::check_gpu(lockstep_code, #call, (place)); \
    }                                                               \
  } while (false)
