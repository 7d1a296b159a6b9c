// What the module links and doesn't call: templates of cuDNN's headers name these. A call is a problem, by name.
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
