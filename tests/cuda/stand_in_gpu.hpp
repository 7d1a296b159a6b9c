// The GPU of a stand-in module: the host, which does everything at once; or, with STAND_IN_CHECKED, a fake that detects
// every unordered access, and every access to memory that is not its own.
#pragma once

#include "comm/transport/gpu_transport.hpp"
#include "cuda/host_transport.hpp"
#include "data/input/gather_kernels.hpp"
#include "device/gpu/gpu.hpp"
#include "ops/registry.hpp"
#include "step/optim/grid_update_kernels.hpp"

#if STAND_IN_CHECKED
#include "cuda/checked_transport.hpp"
#include "device/fake_gpu.hpp"
#include "exec/checked_kernel.hpp"
#include "input/checked_gather_kernels.hpp"
#include "optim/checked_update_kernels.hpp"
#else
#include "cuda/host_gpu.hpp"
#endif

namespace lockstep {

#if STAND_IN_CHECKED

using StandInGpu = device::FakeGpu;
using StandInUpdateKernels = optim::CheckedUpdateKernels;
using StandInGatherKernels = input::CheckedGatherKernels;

inline comm::HostTransport::Touch stand_in_touches(device::Gpu& gpu) {
  return comm::touches(dynamic_cast<StandInGpu&>(gpu));
}
inline KernelFactory stand_in_kernel(const KernelFactory& of_cpu) {
  return exec::checked(of_cpu);
}

#else

using StandInGpu = device::HostGpu;
using StandInUpdateKernels = optim::GridUpdateKernels<device::HostGrid>;
using StandInGatherKernels = input::GridGatherKernels<device::HostGrid>;

inline comm::HostTransport::Touch stand_in_touches(device::Gpu& /*gpu*/) {
  return {};
}
inline KernelFactory stand_in_kernel(const KernelFactory& of_cpu) {
  return of_cpu;
}

#endif

}  // namespace lockstep
