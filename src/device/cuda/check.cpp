#include "device/cuda/check.hpp"

#include <cstdio>

namespace lockstep::device {

namespace {

// Allocates nothing, because a destructor may run while memory is short.
void report(const char* call, int code, const char* what) noexcept {
  (void)std::fprintf(stderr, "lockstep: %s failed with %d: %s\n", call, code, what);
}

}  // namespace

std::string what_is(cudaError_t code) {
  return cudaGetErrorString(code);
}
std::string what_is(cublasStatus_t code) {
  return cublasLtGetStatusString(code);
}
std::string what_is(cudnnStatus_t code) {
  return cudnnGetErrorString(code);
}

void report_gpu(cudaError_t code, const char* call) noexcept {
  if (code == cudaSuccess || code == cudaErrorCudartUnloading) return;
  forget(code);
  report(call, code, cudaGetErrorString(code));
}
void report_gpu(cublasStatus_t code, const char* call) noexcept {
  if (code != CUBLAS_STATUS_SUCCESS) report(call, code, cublasLtGetStatusString(code));
}
void report_gpu(cudnnStatus_t code, const char* call) noexcept {
  if (code != CUDNN_STATUS_SUCCESS) report(call, code, cudnnGetErrorString(code));
}

}  // namespace lockstep::device
