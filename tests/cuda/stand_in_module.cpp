// A CUDA module for tests without CUDA: the functions that the loader needs, and a GPU that is the host with the CPU's
// kernels, so that whole jobs take the GPU's code path through exec and train, and end with the CPU's bits.
//   STAND_IN_BUILD_ID  a string, or the function build_id() of the build
//   STAND_IN_CHECKED   0 or 1: cuda/stand_in_gpu.hpp
//   STAND_IN_KERNELS   by op: used instead of the CPU's kernels; ops::host_grid_kernels(), or none
#include "cuda/host_profiler.hpp"
#include "cuda/stand_in_gpu.hpp"
#include "cuda/stand_in_transport.hpp"
#include "device/gpu/gpu_place.hpp"
#include "lockstep/op.hpp"
#include "lockstep/version.hpp"
#include "ops/op_driver.hpp"
#include "ops/registry.hpp"
#include "ops/relu_after.hpp"
#include "ops/reordered.hpp"

extern "C" const char* lockstep_cuda_build_id() {
  return STAND_IN_BUILD_ID;
}

extern "C" int lockstep_cuda_version() {
  return 13000;
}

extern "C" void lockstep_cuda_libraries(std::string& text) {
  text = "no libraries";
}

extern "C" lockstep::device::Gpu* lockstep_cuda_make_gpu(int /*ordinal*/, const lockstep::device::GpuPlace& /*place*/) {
  return new lockstep::StandInGpu;
}

extern "C" lockstep::comm::GpuTransport* lockstep_cuda_make_transport(lockstep::Communicator& ranks,
                                                                      lockstep::device::Gpu& gpu,
                                                                      const lockstep::device::GpuPlace& place,
                                                                      std::chrono::milliseconds timeout) {
  return lockstep::stand_in_messages(ranks, gpu, place, timeout).release();
}

extern "C" void lockstep_cuda_transport_library(std::string& text) {
  text = "no NCCL";
}

extern "C" lockstep::optim::UpdateKernels* lockstep_cuda_make_update_kernels() {
  return new lockstep::StandInUpdateKernels;
}

extern "C" lockstep::input::GatherKernels* lockstep_cuda_make_gather_kernels() {
  return new lockstep::StandInGatherKernels;
}

extern "C" lockstep::device::GpuProfiler* lockstep_cuda_make_profiler() {
  return new lockstep::device::HostProfiler;
}

extern "C" void lockstep_cuda_register(lockstep::OpRegistry& registry) {
  using namespace lockstep;
  OpRegistry cpu;
  ops::add_built_in(cpu);
  const std::map<std::string, KernelFactory> given = STAND_IN_KERNELS;
  for (const auto& [op, kernel] : given) registry.add_kernel(op, DeviceKind::cuda, kernel, true, true);
  for (const OpDef* op : cpu.all()) {
    if (!op->kernels.contains(DeviceKind::cpu) || registry.at(op->name).kernels.contains(DeviceKind::cuda)) continue;
    const KernelFactory of_cpu = ops::by_models_order(ops::with_epilogues_of_gpus(*op));
    registry.add_kernel(op->name, DeviceKind::cuda, stand_in_kernel(of_cpu));
  }
}
