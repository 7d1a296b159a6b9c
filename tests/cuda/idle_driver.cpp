// A libcuda.so.1 that does nothing: cuDNN compiles kernels for a GPU that is only described to it, but looks for a
// driver first. It names missing functions ("Could not load symbol ...").
extern "C" {

int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}

#define LOCKSTEP_IDLE(name) \
  int name() {              \
    return 3;               \
  } /* CUDA_ERROR_NOT_INITIALIZED */
LOCKSTEP_IDLE(cuCtxGetCurrent)
LOCKSTEP_IDLE(cuCtxGetLimit)
LOCKSTEP_IDLE(cuCtxPopCurrent)
LOCKSTEP_IDLE(cuCtxPushCurrent)
LOCKSTEP_IDLE(cuDeviceGet)
LOCKSTEP_IDLE(cuDeviceGetCount)
LOCKSTEP_IDLE(cuGetErrorName)
LOCKSTEP_IDLE(cuGetErrorString)
LOCKSTEP_IDLE(cuKernelGetAttribute)
LOCKSTEP_IDLE(cuKernelSetAttribute)
LOCKSTEP_IDLE(cuLaunchCooperativeKernel)
LOCKSTEP_IDLE(cuLaunchKernel)
LOCKSTEP_IDLE(cuLaunchKernelEx)
LOCKSTEP_IDLE(cuLibraryGetKernel)
LOCKSTEP_IDLE(cuLibraryLoadData)
LOCKSTEP_IDLE(cuLibraryLoadFromFile)
LOCKSTEP_IDLE(cuLibraryUnload)
LOCKSTEP_IDLE(cuLinkAddData)
LOCKSTEP_IDLE(cuLinkComplete)
LOCKSTEP_IDLE(cuLinkCreate)
LOCKSTEP_IDLE(cuLinkDestroy)
LOCKSTEP_IDLE(cuOccupancyMaxPotentialClusterSize)
LOCKSTEP_IDLE(cuStreamGetCtx)
#undef LOCKSTEP_IDLE

}  // extern "C"
