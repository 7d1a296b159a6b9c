#include "comm/transport/gpu_transport.hpp"

#include "lockstep/error.hpp"

namespace lockstep::comm {

std::unique_ptr<GpuTransport> make_gpu_transport(const device::CudaModule& module, Communicator& ranks,
                                                 device::Gpu& gpu, const device::GpuPlace& place,
                                                 std::chrono::milliseconds timeout) {
  using Make = GpuTransport*(Communicator&, device::Gpu&, const device::GpuPlace&, std::chrono::milliseconds);
  auto* const make = module.library.find<Make>(kModuleMakeTransport);
  LOCKSTEP_CHECK(make != nullptr, "a CUDA module of this build moves bytes between GPUs");
  return std::unique_ptr<GpuTransport>(make(ranks, gpu, place, timeout));
}

std::string transport_library(const device::CudaModule& module) {
  auto* const tell = module.library.find<void(std::string&)>(kModuleTransportLibrary);
  LOCKSTEP_CHECK(tell != nullptr, "a CUDA module of this build says what moves bytes between its GPUs");
  std::string text;
  tell(text);
  return text;
}

}  // namespace lockstep::comm
