// A block of a GPU's memory, and a block of pinned memory, freed with their owner, who sees to it that nothing uses
// them any more. On a lost GPU they are lost with it.
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
  /// At least one byte. The Gpu outlives it.
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

  [[nodiscard]] std::byte* get() const { return memory_; }
  template <class Element>
  [[nodiscard]] Element* as() const {
    return reinterpret_cast<Element*>(memory_);
  }

 private:
  Gpu* gpu_ = nullptr;
  std::byte* memory_ = nullptr;
};

using GpuBlock = BlockOf<&Gpu::allocate, &Gpu::free>;
using PinnedBlock = BlockOf<&Gpu::allocate_pinned, &Gpu::free_pinned>;

}  // namespace lockstep::device
