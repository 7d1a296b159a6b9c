// Functions that the module links but does not call: templates of cuDNN's headers name them. A call is a problem that
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

}  // extern "C"
