// The built-in ops: their list, which CMake generates from the folders beside this file, and their GPU kernels, which
// are in the CUDA module.
#pragma once

#include "lockstep/op.hpp"

namespace lockstep::device {
struct CudaModule;
}

namespace lockstep::ops {

void add_built_in(OpRegistry& registry);

/// Adds the module's kernels to the ops of `registry`, which must have all built-in ones.
void add_gpu_kernels(const device::CudaModule& module, OpRegistry& registry);

}  // namespace lockstep::ops
