// GpuBufferMemory: the memory in which a rank adds its micro-batches' gradients on a GPU.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce/tree_sums.hpp"
#include "device/gpu/gpu.hpp"
#include "device/gpu/gpu_memory.hpp"

namespace lockstep::comm {

/// Sums of gradients on a GPU: every addition is enqueued on one stream, in the order of the host's calls, and events
/// say when memory may be read and when it may be written again.
class GpuBufferMemory final : public BufferMemory {
 public:
  using Event = device::Gpu::Event;
  using Stream = device::Gpu::Stream;

  /// Additions are enqueued on `stream`. The Gpu must outlive it, and all uses of the sums must have finished before it
  /// is destroyed.
  GpuBufferMemory(device::Gpu& gpu, Stream stream) : gpu_(gpu), stream_(stream) {}

  /// Whoever uses it first waits for its `free`.
  [[nodiscard]] float* allocate(std::int64_t elements) override;
  void add(float* left, float* right, std::int64_t elements) override;
  /// To the host, a sum is done when its additions are on the stream, not when they have run.
  bool takes_more() const override { return false; }

  /// The buffer at this address, which must come from allocate().
  GradientBuffer buffer(float* memory) const;
  /// Additions enqueued from now on wait for the kernels that wrote it.
  void written(float* memory) { gpu_.wait(stream_, buffer(memory).written); }
  Stream stream() const { return stream_; }

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
