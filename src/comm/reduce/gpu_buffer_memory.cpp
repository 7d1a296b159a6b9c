#include "comm/reduce/gpu_buffer_memory.hpp"

#include <algorithm>
#include <utility>

namespace lockstep::comm {

float* GpuBufferMemory::allocate(std::int64_t elements) {
  const auto bytes = (std::max<std::int64_t>(elements, 1)) * sizeof(float);
  Block block{device::GpuBlock(gpu_, bytes), gpu_.make_event(), gpu_.make_event()};
  auto* const memory = block.memory.as<float>();
  // Buckets are added as a whole, including the gaps between tensors, which kernels never write.
  gpu_.clear(stream_, block.memory.get(), bytes);
  gpu_.record(block.free, stream_);
  const std::lock_guard lock(mutex_);
  blocks_.emplace(memory, std::move(block));
  return memory;
}

void GpuBufferMemory::add(float* left, float* right, std::int64_t elements) {
  gpu_.add(stream_, left, right, left, elements);
  gpu_.record(buffer(right).free, stream_);
}

GradientBuffer GpuBufferMemory::buffer(float* memory) const {
  const std::lock_guard lock(mutex_);
  const Block& block = blocks_.at(memory);
  return {memory, false, block.free, block.written};
}

}  // namespace lockstep::comm
