#include "comm/gpu_messages.hpp"

#include "lockstep/error.hpp"

namespace lockstep::comm {

std::unique_ptr<GpuMessages> make_gpu_messages(const backend::CudaModule& module, Communicator& ranks,
                                               backend::Gpu& gpu, const backend::GpuPlace& place,
                                               std::chrono::milliseconds timeout) {
  using Make = GpuMessages*(Communicator&, backend::Gpu&, const backend::GpuPlace&, std::chrono::milliseconds);
  auto* const make = module.library.find<Make>(kModuleMakeMessages);
  LOCKSTEP_CHECK(make != nullptr, "a CUDA module of this build moves bytes between GPUs");
  return std::unique_ptr<GpuMessages>(make(ranks, gpu, place, timeout));
}

}  // namespace lockstep::comm
