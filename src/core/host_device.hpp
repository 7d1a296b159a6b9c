// LOCKSTEP_HOST_DEVICE before a function: nvcc compiles it for both the CPU and GPUs. For other compilers it is empty,
// so that the functors of GPU kernels can be tested on the CPU. LOCKSTEP_UNROLL before a loop whose number of rounds is
// constant: nvcc unrolls it, so that an array indexed by its counter can be kept in registers. LOCKSTEP_DO_NOT_UNROLL
// before one of so few rounds that nvcc's copies of its body would be code that never runs.
#pragma once

#ifdef __CUDACC__
#define LOCKSTEP_HOST_DEVICE __host__ __device__
#else
#define LOCKSTEP_HOST_DEVICE
#endif

#ifdef __CUDA_ARCH__
#define LOCKSTEP_UNROLL _Pragma("unroll")
#define LOCKSTEP_DO_NOT_UNROLL _Pragma("unroll 1")
#else
#define LOCKSTEP_UNROLL
#define LOCKSTEP_DO_NOT_UNROLL
#endif
