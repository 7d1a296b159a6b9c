#include "comm/transport/gpu_transport.hpp"

#include "lockstep/error.hpp"

namespace lockstep::comm {

std::unique_ptr<GpuMessages> make_gpu_messages(const device::CudaModule& module, Communicator& ranks, device::Gpu& gpu,
                                               const device::GpuPlace& place, std::chrono::milliseconds timeout) {
  using Make = GpuMessages*(Communicator&, device::Gpu&, const device::GpuPlace&, std::chrono::milliseconds);
  auto* const make = module.library.find<Make>(kModuleMakeMessages);
  LOCKSTEP_CHECK(make != nullptr, "a CUDA module of this build moves bytes between GPUs");
  return std::unique_ptr<GpuMessages>(make(ranks, gpu, place, timeout));
}

std::string messages_library(const device::CudaModule& module) {
  auto* const tell = module.library.find<void(std::string&)>(kModuleMessagesLibrary);
  LOCKSTEP_CHECK(tell != nullptr, "a CUDA module of this build says by what its GPUs exchange");
  std::string text;
  tell(text);
  return text;
}

}  // namespace lockstep::comm
