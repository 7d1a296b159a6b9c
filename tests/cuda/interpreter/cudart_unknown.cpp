// Functions that are linked but not called: cuDNN's headers name them, to measure and to log. A call is a problem that
// names the function.
#include "cuda/interpreter/cudart.hpp"

namespace {

cudaError_t unknown(const char* call) {
  lockstep::ptx::machine().problems.add(std::string(call) + " isn't known");
  return lockstep::ptx::failed(cudaErrorNotSupported);
}

}  // namespace

extern "C" {

cudaError_t cudaEventCreate(cudaEvent_t* /*event*/) {
  return unknown("cudaEventCreate");
}
cudaError_t cudaEventElapsedTime(float* /*milliseconds*/, cudaEvent_t /*first*/, cudaEvent_t /*last*/) {
  return unknown("cudaEventElapsedTime");
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* /*attributes*/, const void* /*memory*/) {
  return unknown("cudaPointerGetAttributes");
}

}  // extern "C"
