// Messages between FakeGpus: each is told what they read and write.
#pragma once

#include "backend/fake_gpu.hpp"
#include "cuda/host_messages.hpp"

namespace lockstep::comm {

inline HostMessages::Touch touches(backend::FakeGpu& gpu) {
  return [&gpu](backend::Gpu::Stream stream, float* memory, std::int64_t elements, bool writes) {
    const auto bytes = static_cast<std::size_t>(elements) * sizeof(float);
    writes ? gpu.kernel_writes(stream, backend::bytes_of(memory), bytes)
           : gpu.kernel_reads(stream, backend::bytes_of(memory), bytes);
  };
}

}  // namespace lockstep::comm
