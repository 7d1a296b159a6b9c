#include "cli/reduce_device.hpp"

namespace lockstep::cli {

comm::ReduceDevice reduce_device(const exec::Device& device, Communicator& communicator) {
  if (!device.is_gpu()) return {};
  device::Gpu& gpu = device.lanes->gpu();
  return {&gpu, [&] {
            return comm::make_gpu_transport(*device.module, communicator, gpu, device.gpu_place, kBenchPatience);
          }};
}

}  // namespace lockstep::cli
