// Blocks of a GPU's memory and of pinned memory, freed with their owner, which must ensure that they are no longer in
// use (on a lost GPU they are lost with it); and the one block that a rank computes in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "device/gpu/gpu.hpp"
#include "lockstep/error.hpp"

namespace lockstep::device {

template <std::byte* (Gpu::*Allocate)(std::size_t), void (Gpu::*Free)(std::byte*)>
class BlockOf {
 public:
  BlockOf() = default;
  /// Allocates at least one byte. The Gpu must outlive it.
  BlockOf(Gpu& gpu, std::size_t bytes) : gpu_(&gpu), memory_((gpu.*Allocate)(std::max<std::size_t>(bytes, 1))) {}
  BlockOf(BlockOf&& other) noexcept { *this = std::move(other); }
  BlockOf& operator=(BlockOf&& other) noexcept {
    std::swap(gpu_, other.gpu_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  BlockOf(const BlockOf&) = delete;
  BlockOf& operator=(const BlockOf&) = delete;
  ~BlockOf() {
    try {
      if (memory_ != nullptr) (gpu_->*Free)(memory_);
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the GPU is lost, and its memory with it
    }
  }

  std::byte* get() const { return memory_; }
  template <class Element>
  Element* as() const {
    return reinterpret_cast<Element*>(memory_);
  }

 private:
  Gpu* gpu_ = nullptr;
  std::byte* memory_ = nullptr;
};

using GpuBlock = BlockOf<&Gpu::allocate, &Gpu::free>;
using PinnedBlock = BlockOf<&Gpu::allocate_pinned, &Gpu::free_pinned>;

/// A rank's working memory on its GPU: one block, as large as the largest plan so far has required, and never the whole
/// card.
class GpuArena {
 public:
  /// The Gpu must outlive the arena.
  explicit GpuArena(Gpu& gpu) : gpu_(gpu), last_use_(gpu.make_event()) {}
  GpuArena(const GpuArena&) = delete;
  GpuArena& operator=(const GpuArena&) = delete;
  ~GpuArena();

  /// At least so many bytes. If the block has to grow, this waits for its last use, and the old content is lost;
  /// otherwise its address does not change.
  [[nodiscard]] std::byte* reserve(std::size_t bytes);
  /// Call when work on this block has been enqueued on the stream, which must be the last one that uses it.
  void used_by(Gpu::Stream stream) { gpu_.record(last_use_, stream); }
  std::size_t bytes() const { return bytes_; }

 private:
  void release();
  Gpu& gpu_;
  Gpu::Event last_use_;
  std::byte* block_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace lockstep::device
