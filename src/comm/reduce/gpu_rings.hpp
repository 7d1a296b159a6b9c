// GpuRings: memory into which the workers of a GPU write the gradients of streamed buckets. A rank's micro-batches of a
// wave have a ring each; a bucket has the same place in every ring, so that kernels are given the same addresses for
// each micro-batch (step/exec/gpu_micro_batch.hpp). Buckets share memory: one may be written when the gradients that
// were there before have been exchanged. That is never one that a worker still has open, or has just finished.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "comm/reduce/gradient_buckets.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "device/gpu/gpu.hpp"
#include "device/gpu/gpu_memory.hpp"

namespace lockstep::comm {

/// Where the streamed buckets lie in a ring, by number among the scattered ones.
struct RingLayout {
  std::vector<std::int64_t> offsets;
  std::vector<int> same;     ///< the last bucket of the same memory
  std::vector<int> earlier;  ///< the last one before it of the same memory; -1: none
  std::int64_t elements = 0;
};

/// `open`: the most elements in buckets that a micro-batch has between buffer() and ready(). `ahead`: as many more may
/// wait for their exchange; at least 64 for each bucket.
[[nodiscard]] RingLayout ring_layout(const GradientBuckets& buckets, std::int64_t open, std::int64_t ahead);

class GpuRings {
 public:
  using Event = device::Gpu::Event;
  using Stream = device::Gpu::Stream;

  /// `clears`: the stream on which memory is cleared.
  GpuRings(device::Gpu& gpu, Stream clears, const RingLayout& layout, int workers);

  /// A bucket in a ring. Its `free` is that of new memory.
  GradientBuffer buffer(int ring, int streamed) const;

 private:
  struct Ring {
    device::GpuBlock memory;
    Event cleared;
    std::vector<Event> written;  ///< by streamed bucket
  };
  std::vector<std::int64_t> offsets_;  ///< by streamed bucket
  std::vector<Ring> rings_;
};

}  // namespace lockstep::comm
