// The GPU kernels of the built-in ops, which the CUDA module holds.
#pragma once

#include "device/gpu/cuda_module.hpp"
#include "lockstep/op.hpp"

namespace lockstep::ops {

/// Adds the module's kernels to the ops of `registry`, which has all built-in ones.
void add_gpu_kernels(const device::CudaModule& module, OpRegistry& registry);

}  // namespace lockstep::ops
