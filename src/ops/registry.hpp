// The built-in ops: their list, which CMake writes of the folders beside this file, and their kernels for GPUs, which
// the CUDA module holds.
#pragma once

#include "lockstep/op.hpp"

namespace lockstep::device {
struct CudaModule;
}

namespace lockstep::ops {

void add_built_in(OpRegistry& registry);

/// Adds the module's kernels to the ops of `registry`, which has all built-in ones.
void add_gpu_kernels(const device::CudaModule& module, OpRegistry& registry);

}  // namespace lockstep::ops
