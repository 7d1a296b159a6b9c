// What lockstep's own kernels for GPUs are given besides what lockstep/op.hpp says, where it is opaque.
#pragma once

#include <string>

namespace lockstep {

class GpuStream;  // of the CUDA module

/// For a kernel that is being made: KernelRequest::gpu points to them meanwhile.
struct GpuKernelOptions {
  /// That of the calls to come. A kernel chooses its libraries' algorithms with it; without one, it uses no library.
  GpuStream* stream = nullptr;
  bool tf32 = false;  ///< libraries may round the operands of float32 matrix multiplications to TF32
  /// Kernel::algorithms() of the first rank's kernel: to be used here, too, or refused by Error(usage). Empty: any.
  std::string algorithms = {};
};

/// The stream that a kernel is launched on. `Call`: ForwardCall or BackwardCall.
template <class Call>
[[nodiscard]] GpuStream* stream_of(const Call& call) {
  return static_cast<GpuStream*>(call.stream);
}

}  // namespace lockstep
