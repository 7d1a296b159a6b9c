// What lockstep's own GPU kernels get in addition to lockstep/op.hpp, where the type is opaque.
#pragma once

#include <string>

namespace lockstep {

class GpuStream;  // from the CUDA module

/// Used while a kernel is made: KernelRequest::gpu points to them.
struct GpuKernelOptions {
  /// The stream of later calls. A kernel uses it to choose library algorithms; without it, the kernel uses no library.
  GpuStream* stream = nullptr;
  bool tf32 = false;  ///< libraries may round the operands of float32 matrix multiplications to TF32
  /// Kernel::algorithms() of rank 0's kernel: must be used here, too, or refused with Error(usage). Empty: any.
  std::string algorithms = {};
};

/// The stream that a kernel is launched on. `Call`: ForwardCall or BackwardCall.
template <class Call>
[[nodiscard]] GpuStream* stream_of(const Call& call) {
  return static_cast<GpuStream*>(call.stream);
}

}  // namespace lockstep
