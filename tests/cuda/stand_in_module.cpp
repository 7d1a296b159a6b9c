// A CUDA module for tests without CUDA: what the loader asks for. STAND_IN_BUILD_ID is a string, or the function
// build_id() of the build.
#include "backend/gpu/build_id.hpp"

extern "C" const char* lockstep_cuda_build_id() {
  return STAND_IN_BUILD_ID;
}

extern "C" int lockstep_cuda_version() {
  return 13000;
}
