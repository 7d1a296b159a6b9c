// LOCKSTEP_HOST_DEVICE before a function: nvcc compiles it for the CPU and for GPUs. To other compilers it is nothing,
// so that the functors of GPU kernels are tested on the CPU.
#pragma once

#ifdef __CUDACC__
#define LOCKSTEP_HOST_DEVICE __host__ __device__
#else
#define LOCKSTEP_HOST_DEVICE
#endif
