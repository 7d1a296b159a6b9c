// Messages between FakeGpus: each fake is told what they read and write.
#pragma once

#include "cuda/host_transport.hpp"
#include "device/fake_gpu.hpp"

namespace lockstep::comm {

inline HostTransport::Touch touches(device::FakeGpu& gpu) {
  return [&gpu](device::Gpu::Stream stream, float* memory, std::int64_t elements, bool writes) {
    const auto bytes = static_cast<std::size_t>(elements) * sizeof(float);
    writes ? gpu.kernel_writes(stream, device::bytes_of(memory), bytes)
           : gpu.kernel_reads(stream, device::bytes_of(memory), bytes);
  };
}

}  // namespace lockstep::comm
