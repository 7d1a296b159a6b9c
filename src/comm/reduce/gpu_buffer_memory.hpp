// Sums of gradients on a GPU: every addition is enqueued on one stream, in the order in which the host asks for it, and
// events say when memory may be read and when it may be written again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "comm/reduce/accumulation_buffers.hpp"
#include "device/gpu/gpu.hpp"
#include "device/gpu/gpu_memory.hpp"

namespace lockstep::comm {

class GpuBufferMemory final : public BufferMemory {
 public:
  using Event = device::Gpu::Event;
  using Stream = device::Gpu::Stream;

  /// Additions go to `stream`. The Gpu outlives it; what uses the sums is done before it ends.
  GpuBufferMemory(device::Gpu& gpu, Stream stream) : gpu_(gpu), stream_(stream) {}

  [[nodiscard]] float* allocate(std::int64_t elements) override;
  void add(float* left, float* right, std::int64_t elements) override;
  /// A sum is done for the host when its additions are on the stream, not when they have run.
  [[nodiscard]] bool takes_more() const override { return false; }

  /// The buffer at this memory, which is of allocate().
  [[nodiscard]] GradientBuffer buffer(float* memory) const;
  /// What is added to it from now on comes after its kernels.
  void written(float* memory) { gpu_.wait(stream_, buffer(memory).written); }
  [[nodiscard]] Stream stream() const { return stream_; }

 private:
  struct Block {
    device::GpuBlock memory;
    Event free, written;
  };
  device::Gpu& gpu_;
  Stream stream_;
  mutable std::mutex mutex_;
  std::unordered_map<float*, Block> blocks_;
};

}  // namespace lockstep::comm
