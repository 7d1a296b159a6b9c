// LOCKSTEP_HOST_DEVICE before a function: nvcc compiles it for both the CPU and GPUs. For other compilers it is empty,
// so that the functors of GPU kernels can be tested on the CPU.
#pragma once

#ifdef __CUDACC__
#define LOCKSTEP_HOST_DEVICE __host__ __device__
#else
#define LOCKSTEP_HOST_DEVICE
#endif
