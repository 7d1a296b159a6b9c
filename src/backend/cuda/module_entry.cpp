// What the program asks of the module before anything else (backend/gpu/cuda_module.hpp).
#include <cuda_runtime_api.h>

#include "backend/gpu/build_id.hpp"

#define LOCKSTEP_EXPORT extern "C" __attribute__((visibility("default")))

LOCKSTEP_EXPORT const char* lockstep_cuda_build_id() {
  return lockstep::backend::build_id();
}

LOCKSTEP_EXPORT int lockstep_cuda_version() {
  return CUDART_VERSION;
}
